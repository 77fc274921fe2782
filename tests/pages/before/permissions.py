"""A memory whose documents name their readers."""

import evokey

memory = evokey.open("pages")
memory.add([{"id": "leave", "text": "days off", "metadata": {"reader": "all", "day": "2024-06-01"}}])
query = "how many days off do I have?"
