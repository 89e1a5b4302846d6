"""Have a real Prometheus scrape real servers, and hold the dashboard and the alerts against it.

    .ci/postgres python3 .ci/monitoring-check.py PROGRAM FOLDER

One server works, and everything goes wrong on another: model calls, a webhook and the backup. A third
one has its database on a PostgreSQL server, and loses the connection to it. Each expression of .package/monitoring/dashboard.json must return figures with the labels of its
legend, no rule may fail, and the alerts of what goes wrong must fire, on that server alone.
"""

import http.server
import json
import math
import os
import re
import smtplib
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

program, folder = sys.argv[1:]
monitoring = ".package/monitoring"
key = "jm_live_key_of_the_monitoring_check"
patience = 60  # seconds for all figures and alerts
provoked = {"JourneymanBackupFailed", "JourneymanNoBackup", "JourneymanModelFailing", "JourneymanTurnsFailing",
            "JourneymanDeliveriesFailing"}
processes = []


class Server:
    """A running server of the program."""

    def __init__(self, name, *flags):
        self.log = os.path.join(folder, name + ".log")
        environment = {**os.environ, "JOURNEYMAN_API_KEY": key, "JOURNEYMAN_MODEL": "offline",
                       "JOURNEYMAN_RATE_LIMIT": "0", "JOURNEYMAN_ALLOW_PRIVATE_NETWORK": "true"}
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [program, "--addr", "127.0.0.1:0", "--smtp-addr", "127.0.0.1:0",
                 "--data", os.path.join(folder, name), *flags],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        processes.append(self.process)
        self.base = wait(lambda: re.search(r"http://127\.0\.0\.1:\d+", self.text()), "no server " + name).group()
        self.instance = self.base.removeprefix("http://")
        self.smtp = re.search(r"smtp://127\.0\.0\.1:(\d+)", self.text()).group(1)
        self.worker = self.post("POST", "/api/workers", {})["id"]

    def text(self):
        with open(self.log) as log:
            return log.read()

    def post(self, method, path, body):
        headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def run(self, *script):
        self.post("POST", "/api/tasks", {"workerId": self.worker, "input": "\n".join(["```offline", *script, "```"])})

    def mail(self):
        with smtplib.SMTP("127.0.0.1", int(self.smtp), timeout=30) as client:
            client.sendmail("ann@example.com", [self.worker + "@localhost"], f"Message-ID: <{time.time()}@check>\r\n"
                            "From: ann@example.com\r\nSubject: Hello\r\n\r\nHello.\r\n")

    def watch(self):
        """Open an event stream, which a thread reads until the server ends."""
        headers = {"Authorization": "Bearer " + key, "Accept": "text/event-stream"}
        request = urllib.request.Request(self.base + f"/api/workers/{self.worker}/stream", headers=headers)
        stream = urllib.request.urlopen(request, timeout=60)

        def read():
            try:
                while stream.read1():
                    pass
            except OSError:
                pass  # the check has ended

        threading.Thread(target=read, daemon=True).start()


class Link:
    """A port that leads to the database server until it is cut."""

    def __init__(self, host, port):
        self.target = host, port
        self.whole, self.lock, self.sockets = True, threading.Lock(), set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near = self.listener.accept()[0]
            with self.lock:
                if not self.whole:
                    near.close()
                    continue
                far = socket.create_connection(self.target)
                self.sockets |= {near, far}
            for ends in (near, far), (far, near):
                threading.Thread(target=self.pump, args=ends, daemon=True).start()

    def pump(self, source, to):
        try:
            while data := source.recv(65536):
                to.sendall(data)
        except OSError:
            pass  # the link was cut
        self.close(source, to)

    def close(self, *sockets):
        for s in sockets:
            with self.lock:
                self.sockets.discard(s)
            try:
                s.shutdown(socket.SHUT_RDWR)  # it also ends the other thread's recv
            except OSError:
                pass  # it is closed already

    def cut(self):
        with self.lock:
            self.whole, sockets = False, list(self.sockets)
        self.close(*sockets)

    def mend(self):
        with self.lock:
            self.whole = True


class Refusal(http.server.BaseHTTPRequestHandler):
    """A receiver that fails."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_error(500)

    def log_message(self, *_):
        pass


def wait(found, what, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := found():
            return result
        time.sleep(0.1)
    sys.exit("monitoring check failed: " + what)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def prometheus(*servers):
    """Start Prometheus with the rules, whose alerts fire soon, and return its address."""
    with open(monitoring + "/alerts.yaml") as rules, open(folder + "/alerts.yaml", "w") as quick:
        quick.write(re.sub(r"(?m)^( +for:) .*", r"\1 2s", rules.read()))
    with open(monitoring + "/prometheus.yaml") as committed, open(folder + "/prometheus.yaml", "w") as quick:
        targets = json.dumps([s.instance for s in servers])
        quick.write(committed.read().replace('["127.0.0.1:8080"]', targets).replace("interval: 15s", "interval: 1s"))
    address = f"127.0.0.1:{free_port()}"
    with open(folder + "/prometheus.log", "w") as log:
        processes.append(subprocess.Popen(
            ["prometheus", "--config.file", folder + "/prometheus.yaml", "--storage.tsdb.path", folder + "/prometheus",
             "--web.listen-address", address], stdout=log, stderr=log))
    return "http://" + address


def ask(path, **values):
    """Return the data of an answer of Prometheus, or None until it is ready. A refusal ends the check."""
    try:
        with urllib.request.urlopen(f"{base}/api/v1/{path}?{urllib.parse.urlencode(values)}", timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as refusal:
        if refusal.code == 503:
            return None
        sys.exit(f"monitoring check failed: {path} {values}: {refusal.read().decode()}")
    except urllib.error.URLError:
        return None


def expressions():
    """Return the title of the panel, the expression and the legend of each query of the dashboard."""
    with open(monitoring + "/dashboard.json") as f:
        panels = json.load(f)["panels"]
    for panel in panels:
        for query in panel.get("targets", []):
            expression = query["expr"].replace("$instance", ".+")
            expression = re.sub(r"\$__(rate_interval|range|interval)", "1m", expression)
            yield panel["title"], expression, re.findall(r"{{(\w+)}}", query["legendFormat"])


def missing():
    """Return the queries of the dashboard that have no figure yet, or not the labels of their legend."""
    lacking = []
    for title, expression, labels in expressions():
        answer = ask("query", query=expression)
        figures = [r for r in answer["result"] if not math.isnan(float(r["value"][1]))] if answer else []
        if not figures or any(label not in r["metric"] for r in figures for label in labels):
            lacking.append(f"{title}: {expression} {labels}")
    return lacking


def firing():
    """Return the pairs of alert and instance that fire."""
    alerts = (ask("alerts") or {"alerts": []})["alerts"]
    return {(a["labels"]["alertname"], a["labels"].get("instance")) for a in alerts if a["state"] == "firing"}


def load():
    """Have both servers do a little of everything."""
    good.run("tool list_files {}", "say done")
    good.mail()
    for _ in range(3):
        bad.run("fail 400 broken")


def series(server):
    """Return the names of the program's own figures of a server."""
    answer = ask("query", query=f'{{__name__=~"journeyman_.+", instance="{server.instance}"}}')
    return {r["metric"]["__name__"] for r in answer["result"]}


def outage():
    """Cut the link to a database. The alert fires, no figure vanishes, and the alert ends afterwards."""
    alert = ("JourneymanDatabaseDown", shared.instance)
    if alert in firing():
        sys.exit("monitoring check failed: an alert for a database that answers")
    before = series(shared)
    if not {"journeyman_database_up", "journeyman_turns_queued"} <= before:
        sys.exit(f"monitoring check failed: figures before the outage: {sorted(before)}")
    link.cut()
    wait(lambda: alert in firing(), "no alert for a database that does not answer", patience)
    if gone := before - series(shared):
        sys.exit(f"monitoring check failed: these figures vanish with the database: {sorted(gone)}")
    link.mend()
    wait(lambda: alert not in firing(), "the alert stays when the database answers again", patience)
    print(f"ok: a database that is gone raises JourneymanDatabaseDown, and {len(before)} figures stay")


def check():
    global base
    base = prometheus(good, bad, shared)
    deadline = time.monotonic() + patience
    while True:
        load()
        lacking = missing()
        silent = {(name, bad.instance) for name in provoked} - firing()
        if not lacking and not silent:
            break
        if time.monotonic() > deadline:
            lacking += [f"{name} does not fire" for name, _ in silent]
            sys.exit("monitoring check failed:\n" + "\n".join(lacking))
        time.sleep(1)
    print(f"ok: {len(list(expressions()))} queries of the dashboard return figures")
    print("ok: these alerts fire:", *sorted(provoked))
    false = {name for name, instance in firing() if instance == good.instance and name in provoked}
    if false:
        sys.exit(f"monitoring check failed: alerts of a server that works: {false}")
    rules = [r for group in ask("rules")["groups"] for r in group["rules"]]
    if broken := [r for r in rules if r["health"] != "ok"]:
        sys.exit(f"monitoring check failed: {broken}")
    print(f"ok: {len(rules)} rules are evaluated without an error")
    instances = ask("label/instance/values", **{"match[]": "journeyman_build_info"})
    if set(instances) != {good.instance, bad.instance, shared.instance}:
        sys.exit(f"monitoring check failed: the variable of the dashboard lists {instances}")
    with urllib.request.urlopen(good.base + "/metrics") as answer, open(folder + "/metrics", "wb") as metrics:
        metrics.write(answer.read())
    outage()
    bad.process.kill()
    wait(lambda: ("JourneymanDown", bad.instance) in firing(), "no alert for a server that is gone")
    print("ok: a server that is gone raises JourneymanDown")


database = urllib.parse.urlsplit(os.environ["JOURNEYMAN_TEST_DATABASE"])
os.makedirs(folder)
with open(folder + "/file", "w"):
    pass
receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusal)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
try:
    good = Server("good", "--backup-to", folder + "/backups", "--backup-every", "24h",
                  "--mail-sender-limit", "0")
    bad = Server("bad", "--backup-to", folder + "/file/below", "--backup-every", "24h")
    link = Link(database.hostname, database.port)
    through = database._replace(netloc=f"{database.username}@127.0.0.1:{link.port}")
    shared = Server("shared", "--database", through.geturl())
    good.watch()
    bad.post("PUT", f"/api/workers/{bad.worker}/webhook", {"url": f"http://127.0.0.1:{receiver.server_port}/"})
    check()
finally:
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        process.wait(30)
