"""Send mail from outside through a real Postfix to a running server.

    python3 .ci/postfix-check.py BASE_URL SMTP_HOST:PORT API_KEY AUTHSERV_ID MAIL_DOMAIN

Postfix runs with a configuration and a queue of its own on loopback ports that are
free, set up as mail/README.md says, and is stopped at the end. A small milter stands in
for the one that checks senders (rspamd, OpenDMARC): it adds the field that the test
asks for with X-Check, or none. The server must believe that field and no other.
"""

import json
import os
import pwd
import re
import shutil
import smtplib
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

base, smtp_address, key, authserv_id, mail_domain = sys.argv[1:]
checks = 0


def check(what, ok):
    global checks
    if not ok:
        raise SystemExit(f"Postfix check failed: {what}")
    checks += 1
    print(f"ok: {what}")


def api(path, body=None, accept="application/json"):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Accept": accept, "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(base + path, data, headers), timeout=60) as answer:
        raw = answer.read()
    return raw.decode() if accept == "message/rfc822" else json.loads(raw)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Milter(threading.Thread):
    """Speaks the milter protocol as far as Postfix needs it to have a field added."""

    def __init__(self):
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]

    def run(self):
        while True:
            conn, _ = self.server.accept()
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        add, stream = None, conn.makefile("rb")

        def send(command, data=b""):
            conn.sendall(struct.pack(">I", len(data) + 1) + command + data)

        while size := stream.read(4):
            packet = stream.read(struct.unpack(">I", size)[0])
            command, data = packet[:1], packet[1:]
            if command == b"O":  # version 6; it adds fields; it wants every step answered
                send(b"O", struct.pack(">III", 6, 0x01, 0))
            elif command in b"DA":  # macros and abort have no answer
                add = add if command == b"D" else None
            elif command == b"Q":
                break
            elif command == b"L":
                name, value = data.split(b"\0")[:2]
                if name.lower() == b"x-check":
                    add = value.strip()
                send(b"c")
            elif command == b"E":
                if add:  # at 1, as OpenDMARC does, Postfix puts it below its own Received field, where senders can write, too
                    send(b"i", struct.pack(">I", 1) + b"Authentication-Results\0 " + add + b"\0")
                add = None
                send(b"a")
            else:
                send(b"c")


def readme_settings():
    """The settings that the recipe of mail/README.md gives to postconf."""
    with open(os.path.join(os.path.dirname(__file__), "..", "mail", "README.md"), encoding="utf-8") as f:
        block = re.search(r"postconf -e (.*?)\npostfix reload", f.read(), re.S).group(1)
    settings = re.findall(r"'([^']+)'", block)
    check("the README's recipe routes and strips", [s.split(" =")[0] for s in settings] == ["relay_domains", "transport_maps", "header_checks"])
    return [s.replace("workers.example.com", mail_domain).replace("[127.0.0.1]:2525", "[%s]:%s" % tuple(smtp_address.rsplit(":", 1))) for s in settings]


def configure(folder, port, milter):
    """A Postfix of its own: nothing of the system's is read or written."""
    for name in ("queue", "data", "config"):
        os.mkdir(os.path.join(folder, name))
    os.chmod(folder, 0o755)
    postfix = pwd.getpwnam("postfix")
    os.chown(os.path.join(folder, "data"), postfix.pw_uid, postfix.pw_gid)
    config = os.path.join(folder, "config")
    settings = ["compatibility_level = 3.6", f"queue_directory = {folder}/queue", f"data_directory = {folder}/data", f"myhostname = {authserv_id}",
                "mydestination =", "inet_interfaces = 127.0.0.1", "inet_protocols = ipv4", "mynetworks =", "alias_maps =", "local_recipient_maps =",
                "smtpd_relay_restrictions = reject_unauth_destination", "smtp_host_lookup = native", "smtp_dns_support_level = disabled",
                "smtp_tls_security_level = none", f"maillog_file = {folder}/log", "maillog_file_prefixes = /",
                f"smtpd_milters = inet:127.0.0.1:{milter}", "milter_default_action = tempfail"] + readme_settings()
    with open(os.path.join(config, "main.cf"), "w", encoding="utf-8") as f:
        f.write("\n".join(settings) + "\n")
    services = [f"127.0.0.1:{port} inet n - n - - smtpd", "pickup unix n - n 60 1 pickup", "cleanup unix n - n - 0 cleanup",
                "qmgr unix n - n 300 1 qmgr", "rewrite unix - - n - - trivial-rewrite", "bounce unix - - n - 0 bounce", "defer unix - - n - 0 bounce",
                "trace unix - - n - 0 bounce", "smtp unix - - n - - smtp", "relay unix - - n - - smtp", "error unix - - n - - error",
                "retry unix - - n - - error", "anvil unix - - n - 1 anvil", "scache unix - - n - 1 scache", "proxymap unix - - n - - proxymap",
                "postlog unix-dgram n - n - 1 postlogd"]
    with open(os.path.join(config, "master.cf"), "w", encoding="utf-8") as f:
        f.write("\n".join(services) + "\n")
    return config


def await_port(port):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("Postfix check failed: it does not listen")


def received(message_id):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for e in api("/api/emails?direction=inbound&limit=100")["items"]:
            if e["messageId"] == message_id:
                return e
        time.sleep(0.05)
    raise SystemExit(f"Postfix check failed: {message_id} did not arrive")


def send(port, address, number, *fields, sender="ann@members.test"):
    message_id = f"{number}@members.test"
    with smtplib.SMTP("127.0.0.1", port, timeout=30) as smtp:
        head = [*fields, f"From: {sender}", f"To: {address}", "Subject: Hello", f"Message-ID: <{message_id}>"]
        smtp.sendmail(sender, [address], "\r\n".join(head) + "\r\n\r\nWhat can you do?\r\n")
    return received(message_id)


def run(port):
    worker = api("/api/workers", {"title": "Reader"})["id"]
    address = f"{worker}@{mail_domain}"
    passed = f"{authserv_id}; dmarc=pass (p=none dis=none) header.from=members.test"
    failed = f"{authserv_id}; dmarc=fail (p=none dis=none) header.from=members.test"
    for number, (what, believed, fields) in enumerate([
        ("a mail that passed", True, [f"X-Check: {passed}"]),
        ("a mail that failed", False, [f"X-Check: {failed}"]),
        ("a mail of which nothing is said", False, []),
        ("a mail whose sender says that it passed", False, [f"Authentication-Results: {passed}"]),
        ("a mail whose sender says so, and that failed", False, [f"Authentication-Results: {passed}", f"X-Check: {failed}"]),
        ("a mail whose sender says so under the name in capitals", False, [f"AUTHENTICATION-RESULTS: {passed.upper()}"]),
        ("a mail whose sender says so in a folded field", False, [f"Authentication-Results:\r\n\t{passed}"]),
        ("a mail whose sender says so with a space before the colon", False, [f"Authentication-Results : {passed}"]),
        ("a mail whose sender says so behind a comment", False, [f"Authentication-Results: (x) {passed}"]),
        ("a mail whose sender says the contrary, and that passed", True, [f"Authentication-Results: {failed}", f"X-Check: {passed}"]),
    ]):
        mail = send(port, address, number, *fields)
        raw = api(f"/api/emails/{mail['id']}", accept="message/rfc822")
        check(f"{what}: taken in", mail["status"] == "accepted" and mail["from"] == "ann@members.test")
        check(f"{what}: {'its author' if believed else 'a stranger'}", mail["verdicts"]["authenticated"] == believed and not mail["verdicts"]["local"])
        check(f"{what}: only the milter's field is left", raw.lower().count("authentication-results") == sum(f.startswith("X-Check") for f in fields))


folder = tempfile.mkdtemp(prefix="journeyman-postfix-")
milter = Milter()
milter.start()
try:
    port = free_port()
    config = configure(folder, port, milter.port)
    postfix = subprocess.Popen(["postfix", "-c", config, "start-fg"])
    try:
        await_port(port)
        run(port)
    except BaseException:
        with open(os.path.join(folder, "log"), encoding="utf-8") as f:
            print(f.read()[-8000:], file=sys.stderr)
        raise
    finally:
        subprocess.run(["postfix", "-c", config, "stop"], check=True, timeout=60)
        postfix.wait(timeout=60)
finally:
    shutil.rmtree(folder)
print(f"{checks} passed, 0 failed")
