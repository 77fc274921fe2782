"""PDF files with text, made by hand: small, sound, and without a library."""

from __future__ import annotations


def pdf(*pages: str, title: str = "") -> bytes:
    """A small PDF with a line of text for each line of each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for page in pages:
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in page.split("\n"))
        stream = f"BT /F1 12 Tf 72 720 Td {lines} ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        kids.append(f"{len(objects) + 1} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            f"/Resources << /Font << /F1 3 0 R >> >> >>"
        )
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    objects.append(f"<< /Title ({title}) /Author (Ada) >>")
    made = b"%PDF-1.4\n" + b"".join(f"{n} 0 obj\n{one}\nendobj\n".encode() for n, one in enumerate(objects, 1))
    return made + f"trailer << /Root 1 0 R /Info {len(objects)} 0 R /Size {len(objects) + 1} >>\n%%EOF".encode()
