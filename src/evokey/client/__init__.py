"""A client of the service, with the verbs of Memory: `from evokey.client import Client`."""

from evokey.client.client import Answered, Client, Hits

__all__ = ["Answered", "Client", "Hits"]
