"""A folder with two files, and a PDF of one page."""

from pathlib import Path

Path("docs").mkdir()
Path("docs/guide.md").write_text("# Guide\n\nHow to undo a commit.\n")
Path("docs/page.html").write_text("<html><body><main><h1>Page</h1><p>Some words about search.</p></main></body></html>")
stream = b"BT /F1 12 Tf 72 720 Td (Notes of the meeting about releases) Tj ET"
objects = [
    b"<< /Type /Catalog /Pages 2 0 R >>",
    b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
    b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
    b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
]
out, starts = b"%PDF-1.4\n", []
for number, one in enumerate(objects, 1):
    starts.append(len(out))
    out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
table = b"".join(b"%010d 00000 n \n" % start for start in starts)
trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
Path("notes.pdf").write_bytes(out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + trailer)
