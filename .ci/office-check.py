"""Give a running server the tasks of an office, by mail, and open what it sends back.

    python3 .ci/office-check.py BASE_URL SMTP_HOST:PORT API_KEY MODEL_PORT

The offline model follows the script in each mail, so
what is tested are the tools: that they read what other programs wrote, and that other programs open
what they wrote. A scanned invoice is read by a model that sees: a stand-in at MODEL_PORT,
the server's OPENAI_BASE_URL, that asks for the page and reads the picture with an OCR program.
Ends with status 1 and a word of why where a task fails.
"""

import base64
import csv
import email
import email.message
import email.policy
import email.utils
import http.server
import io
import json
import pathlib
import re
import smtplib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile

base, smtp_address, key, model_port = sys.argv[1:]
host, port = smtp_address.rsplit(":", 1)
made = pathlib.Path(tempfile.mkdtemp(prefix="office-"))
done = 0


def check(what, ok, seen=""):
    if not ok:
        sys.exit(f"office check failed: {what}\n{seen}")


def api(path, body=None, accept="application/json"):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Accept": accept, "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(base + path, data, headers), timeout=60) as answer:
        raw = answer.read()
    return raw if accept == "message/rfc822" else json.loads(raw)


def run(*command, **options):
    """The output of a program, which must succeed."""
    done = subprocess.run(command, capture_output=True, timeout=180, **options)
    check(f"{command[0]} ends well", done.returncode == 0, done.stderr.decode(errors="replace"))
    return done.stdout


def convert(path, kind):
    """The text of a file that LibreOffice has converted."""
    run("soffice", f"-env:UserInstallation=file://{made}/profile", "--headless", "--convert-to", kind, "--outdir", str(made / "converted"), str(path))
    return made / "converted" / (path.stem + "." + kind.split(":")[0])


class SeeingModel(http.server.BaseHTTPRequestHandler):
    """A model with the API of OpenAI that asks for page 1 of scan.pdf, and answers with what it reads."""

    def do_POST(self):
        request = self.rfile.read(int(self.headers["Content-Length"])).decode()
        picture = re.search(r'"data:image/\w+;base64,([^"]+)"', request)
        if picture:
            text = run("tesseract", "-", "-", input=base64.b64decode(picture[1])).decode()
            delta, finish = {"content": text}, "stop"
        else:
            call = {"name": "view_image", "arguments": json.dumps({"path": "scan.pdf", "page": 1})}
            delta, finish = {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": call}]}, "tool_calls"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for choice, usage in [({"delta": delta}, None), ({"delta": {}, "finish_reason": finish}, {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18})]:
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5-mini", "choices": [{"index": 0, **choice}], "usage": usage}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


class Reply:
    """The answer to a mail: its text, and its files by name."""

    def __init__(self, raw):
        message = email.message_from_bytes(raw, policy=email.policy.default)
        self.text = message.get_body(("plain",)).get_content()
        self.files = {p.get_filename(): p.get_content() for p in message.iter_attachments()}

    def file(self, name):
        check(f"the reply has {name}", name in self.files, f"{list(self.files)}\n{self.text}")
        path = made / name
        path.write_bytes(self.files[name])
        return path

    def says(self, *words):
        for word in words:
            check(f"the reply says {word!r}", word in self.text, self.text)


def tool(name, **arguments):
    return f"tool {name} {json.dumps(arguments)}"


def ask(subject, files, *lines, worker=None):
    """Mails files and a script to a worker, and waits for the reply."""
    global done
    mail = email.message.EmailMessage()
    done += 1
    mail["From"], mail["To"], mail["Subject"] = "Ann <ann@example.com>", worker or address, subject
    mail["Message-ID"], mail["Date"] = f"<office.{done}@example.com>", email.utils.localtime()
    mail.set_content("```offline\n" + "\n".join(lines) + "\n```\n" if lines else subject + "\n")
    for path in files:
        mail.add_attachment(path.read_bytes(), maintype="application", subtype="octet-stream", filename=path.name)
    with smtplib.SMTP(host, int(port), timeout=60) as smtp:
        smtp.send_message(mail)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for e in api("/api/emails?direction=outbound&limit=100")["items"]:
            if e["subject"] == "Re: " + subject and e["status"] == "kept":
                print(f"ok: {subject}")
                return Reply(api(f"/api/emails/{e['id']}", accept="message/rfc822"))
        time.sleep(0.1)
    sys.exit(f"office check failed: no reply to {subject}\n{api('/api/emails?limit=10')}")


def text_of(path):
    return " ".join(run("pdftotext", "-layout", str(path), "-").decode().split())


threading.Thread(target=http.server.HTTPServer(("127.0.0.1", int(model_port)), SeeingModel).serve_forever, daemon=True).start()
address = api("/api/workers/" + api("/api/workers", {"title": "Office"})["id"] + "/email")["email"]

# A scanned invoice: only a model that sees can read it. The stand-in asks for the page, and reads the picture.
(made / "invoice.html").write_text("<h1>Invoice 4711</h1><p>To pay by 2026-12-24: 1,234.50 EUR</p>")
run("weasyprint", str(made / "invoice.html"), str(made / "text.pdf"))
run("pdftoppm", "-r", "150", "-png", "-singlefile", str(made / "text.pdf"), str(made / "page"))
run("img2pdf", str(made / "page.png"), "-o", str(made / "scan.pdf"))
seeing = api("/api/workers", {"title": "Sees", "model": "openai:gpt-5-mini"})["id"]
ask("What is to be paid?", [made / "scan.pdf"], worker=api(f"/api/workers/{seeing}/email")["email"]).says("1,234.50", "4711")

# A clause of a long contract, with its page.
pages = ".bp\n".join(f"Clause {n}. The parties agree on point {n} in good faith.\n" for n in range(1, 201))
pages = pages.replace("point 137 in", "a penalty of 4.25 percent in")
(made / "contract.ps").write_bytes(run("groff", "-Tps", input=pages.encode()))
run("ps2pdf", str(made / "contract.ps"), str(made / "contract.pdf"))
reply = ask("Which penalty?", [made / "contract.pdf"], tool("search_files", pattern="penalty"), "say {{last}}")
reply.says("[page 137 of 200]", "a penalty of 4.25 percent")

# Three lists of three offices become one workbook with formulas and a chart.
for name, encoding, rows in [("north", "utf-8-sig", "Month,Sales\nJan,100\nFeb,120\n"),
                             ("süd", "cp1252", "Monat;Umsatz\r\nJänner;80\r\nFebruar;95\r\n"),
                             ("east", "utf-16", "Month\tSales\nJan\t60\nFeb\t75\n")]:
    (made / f"{name}.csv").write_bytes(rows.encode(encoding))
sheet = [["Month", "North", "South", "East", "Total"], ["Jan", 100, 80, 60, {"formula": "SUM(B2:D2)"}],
         ["Feb", 120, 95, 75, {"formula": "SUM(B3:D3)"}], ["Both", *[{"formula": f"SUM({c}2:{c}3)"} for c in "BCDE"]]]
reply = ask("Join the lists", [made / "north.csv", made / "süd.csv", made / "east.csv"],
            tool("read_file", path="süd.csv"), "say {{last}}")
reply.says("Jänner")
reply = ask("Make the workbook", [], tool("write_file", path="joined.xlsx", content=json.dumps({"Sales": sheet})),
            tool("publish_file", path="joined.xlsx"), "say Done.")
book = reply.file("joined.xlsx")
rows = list(csv.reader(io.StringIO(convert(book, "csv").read_text())))
check("LibreOffice computes the sums", rows[3] == ["Both", "220", "175", "135", "530"], rows)
values = json.loads(run("/usr/bin/python3", "-c", "import json, pandas, sys; print(json.dumps(pandas.read_excel(sys.argv[1])['Total'].tolist()))", str(book)))
check("pandas sees the sums", values == [240, 290, 530], values)

# Minutes as a Word document with a table.
minutes = "# Minutes\n\nPresent: Ann, Bob\n\n| Topic | Decision |\n|---|---|\n| A \\| B | Yes |\n\n1. Buy paper\n2. Call Zoë\n"
path = ask("Write the minutes", [], tool("write_file", path="minutes.docx", content=minutes), tool("publish_file", path="minutes.docx"),
           "say Done.").file("minutes.docx")
seen = run("/usr/bin/python3", "-c", "import docx, sys; d = docx.Document(sys.argv[1]); s = d.sections[0]; "
           "print(round(s.page_width.mm), d.tables[0].cell(1, 0).text)", str(path)).decode()
check("python-docx sees the page and the table", seen == "210 A | B\n", seen)
check("LibreOffice prints it", "Call Zoë" in text_of(convert(path, "pdf")))

# A report as PDF.
report = "# Report\n\nÜber 20 % — **Δ** grew, said Жанна.\n\n| Item | Price |\n|---|---:|\n| Paper | 3,50 € |\n\n- one\n- two\n"
path = ask("Write the report", [], tool("write_file", path="report.pdf", content=report), tool("publish_file", path="report.pdf"),
           "say Done.").file("report.pdf")
seen = text_of(path)
for words in ["Report", "Über 20 % — Δ grew, said Жанна.", "Paper 3,50 €", "one"]:
    check(f"the report has {words!r}", words in seen, seen)

# A chart as a picture.
chart = tool("make_chart", path="sales.png", kind="bar", title="Sales", labels=["Jan", "Feb"], series=[{"name": "North", "values": [100, 120]}])
path = ask("Draw the sales", [], chart, tool("publish_file", path="sales.png"), "say {{last}}").file("sales.png")
check("the chart is a picture", b"PNG image data" in run("file", str(path)), run("file", str(path)))

# A bundle of files: what is in it, and where.
with zipfile.ZipFile(made / "bundle.zip", "w") as bundle:
    bundle.write(made / "contract.pdf", "legal/contract.pdf")
    bundle.writestr("notes/today.txt", "Call the plumber about the leak.")
reply = ask("Who is to be called?", [made / "bundle.zip"], tool("read_file", path="bundle.zip"),
            "say {{last}}")
reply.says("legal/contract.pdf", "notes/today.txt")
ask("What about the leak?", [made / "bundle.zip"], tool("search_files", pattern="leak"), "say {{last}}").says("notes/today.txt", "plumber")

# A mail that somebody saved, with the contract in it.
saved = email.message.EmailMessage()
saved["From"], saved["To"], saved["Subject"] = "Zoë <zoe@example.com>", "ann@example.com", "Vertrag für Grün"
saved.set_content("Please sign page 12.\n")
saved.add_attachment((made / "contract.pdf").read_bytes(), maintype="application", subtype="pdf", filename="Vertrag.pdf")
(made / "saved.eml").write_bytes(saved.as_bytes())
ask("What should I sign?", [made / "saved.eml"], tool("read_file", path="saved.eml"), "say {{last}}").says("Zoë", "Vertrag für Grün", "sign page 12", "Vertrag.pdf")
ask("What is on it?", [made / "saved.eml"], tool("read_file", path="saved.eml/Vertrag.pdf", pages="12"), "say {{last}}").says("point 12")

print(f"{done} passed, 0 failed")
