"""A memory that several people have taught."""

import evokey

with evokey.open(".evokey") as memory:
    memory.add([{"id": f"d{n}", "text": f"leaf{n} bark{n} words"} for n in range(30)])
    for n in range(30):
        memory.feedback(f"ask{n} root{n}", relevant=[f"d{n}"], actor=("ada", "ben", "mallory")[n % 3])
