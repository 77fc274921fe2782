"""Was it right? A verifier maps what it measures to yes, no or abstention, and names the documents it vouches for."""
