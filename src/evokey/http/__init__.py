"""How remote services are called: one client, with limits on time and size."""
