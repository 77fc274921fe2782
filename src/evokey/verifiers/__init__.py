"""Was it right? A verifier maps what it measures to yes, no or "cannot tell", and names documents it vouches for."""
