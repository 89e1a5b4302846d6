"""Mail a running server as people's programs do, and read the replies.

    python3 .ci/mail-check.py BASE_URL SMTP_HOST:PORT API_KEY

swaks and Python's smtplib each mail a worker a PDF and a question; the reply in
the outbox must thread. Ends with status 1 and a word of why where it does not.
"""

import email
import email.message
import email.policy
import json
import smtplib
import subprocess
import sys
import tempfile
import time
import urllib.request

base, smtp_address, key = sys.argv[1:]
host, port = smtp_address.rsplit(":", 1)
pdf = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
checks = 0


def check(what, ok):
    global checks
    if not ok:
        sys.exit(f"mail check failed: {what}")
    checks += 1
    print(f"ok: {what}")


def api(path, body=None, accept="application/json"):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Accept": accept, "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(base + path, data, headers), timeout=60) as answer:
        raw = answer.read()
    return raw if accept == "message/rfc822" else json.loads(raw)


def reply_to(task, count):
    """The newest of count replies of a task, parsed."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        mine = [e for e in api("/api/emails?direction=outbound&limit=100")["items"] if e["taskId"] == task and e["status"] == "kept"]
        if len(mine) == count:
            raw = api(f"/api/emails/{mine[0]['id']}", accept="message/rfc822")
            return email.message_from_bytes(raw, policy=email.policy.default)
        time.sleep(0.05)
    sys.exit(f"mail check failed: no reply number {count} to {task}")


def received(message_id, copies=0):
    found = [e for e in api("/api/emails?direction=inbound&limit=100")["items"] if e["messageId"] == message_id]
    first = [e for e in found if e["status"] != "ignored"]
    check(f"one mail {message_id}, {copies} copies", len(first) == 1 and len(found) == 1 + copies)
    return first[0]


def script(*lines):
    return "```offline\n" + "\n".join(lines) + "\n```\n"


worker = api("/api/workers", {"title": "Reader", "instructions": "Read what you are sent."})["id"]
address = api(f"/api/workers/{worker}/email")["email"]

# swaks, over STARTTLS.
with tempfile.NamedTemporaryFile(suffix=".pdf", prefix="report-") as file:
    file.write(pdf)
    file.flush()
    subprocess.run(
        ["swaks", "--server", host, "--port", port, "-tls", "--from", "ann@example.com", "--to", address,
         "--header", "Subject: What does the report say?", "--header", "Message-Id: <swaks.1@example.com>",
         "--body", script('tool list_files {}', 'say Read **it**.'), "--attach-type", "application/pdf", "--attach", f"@{file.name}"],
        check=True, stdout=subprocess.DEVNULL, timeout=60)
mail = received("swaks.1@example.com")
check("swaks: accepted", mail["status"] == "accepted")
task = mail["taskId"]
reply = reply_to(task, 1)
check("the reply threads", reply["In-Reply-To"] == "<swaks.1@example.com>" and "<swaks.1@example.com>" in reply["References"])
check("the reply goes to the author", reply["To"].addresses[0].addr_spec == "ann@example.com")
check("the reply keeps the subject", reply["Subject"] == "Re: What does the report say?")
check("the reply says that a program wrote it", reply["Auto-Submitted"] == "auto-replied")
check("the reply has text", "Read **it**." in reply.get_body(("plain",)).get_content())
check("the reply has HTML", "<strong>it</strong>" in reply.get_body(("html",)).get_content())
turns = api(f"/api/tasks/{task}/turns")["items"]
run = api(f"/api/workers/{worker}?taskId={task}")
check("the PDF is in the workspace", "report-" in json.dumps(run["messages"]))

# smtplib answers the reply, twice the same mail.
follow = email.message.EmailMessage()
follow["From"], follow["To"], follow["Subject"] = "Ann <ann@example.com>", address, reply["Subject"]
follow["Message-ID"], follow["In-Reply-To"], follow["References"] = "<smtplib.1@example.com>", reply["Message-ID"], reply["References"] + " " + reply["Message-ID"]
quote = "\n".join("> " + line for line in reply.get_body(("plain",)).get_content().splitlines())
follow.set_content(script("say Grüße.") + "\nOn Sat, 21 Nov 2026, Reader wrote:\n" + quote + "\n")
follow.add_attachment(pdf, maintype="application", subtype="pdf", filename="Übersicht.pdf")
for _ in range(2):
    with smtplib.SMTP(host, int(port), timeout=30) as smtp:
        smtp.send_message(follow)
mail = received("smtplib.1@example.com", copies=1)
check("smtplib: the same task", mail["taskId"] == task)
reply = reply_to(task, 2)
check("the second reply threads", reply["In-Reply-To"] == "<smtplib.1@example.com>" and len(reply["References"].split()) == 3)
check("the second reply", "Grüße." in reply.get_body(("plain",)).get_content())
turns = api(f"/api/tasks/{task}/turns")["items"]
check("one turn for the mail sent twice", len(turns) == 2)
check("without the quote", "wrote:" not in turns[1]["input"])

with smtplib.SMTP(host, int(port), timeout=30) as smtp:
    try:
        smtp.sendmail("ann@example.com", ["nobody@" + address.split("@")[1]], "Subject: x\r\n\r\nx")
        sys.exit("mail check failed: nobody was accepted")
    except smtplib.SMTPRecipientsRefused as refused:
        check("nobody is refused", [code for code, _ in refused.recipients.values()] == [550])

print(f"{checks} passed, 0 failed")
