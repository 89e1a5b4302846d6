#!/usr/bin/env python3
"""Runs the recipe of store/README.md for Litestream: replicate under load, kill both, restore.

    litestream-check.py JOURNEYMAN LITESTREAM SCRATCH

Each task that was acknowledged before a pause, in which Litestream catches up, must be in the
restored database. The database must be sound, and the program must start on it.
"""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

journeyman, litestream, scratch = sys.argv[1:]
key = "jm_live_key_of_the_litestream_check"
data, replica, restored = (os.path.join(scratch, name) for name in ("ls-data", "ls-replica", "ls-restored"))
started = []


def start(name, *command):
    log = open(os.path.join(scratch, name + ".log"), "w")
    env = dict(os.environ, JOURNEYMAN_API_KEY=key, JOURNEYMAN_MODEL="offline", JOURNEYMAN_RATE_LIMIT="0",
               JOURNEYMAN_SMTP_ADDR="")
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=env)
    started.append(process)
    return process, log.name


def serve(name, folder):
    process, log = start(name, journeyman, "--addr", "127.0.0.1:0", "--data", folder)
    for _ in range(600):
        found = re.search(r"http://127\.0\.0\.1:\d+", open(log).read())
        if found:
            try:
                call(found[0], "GET", "/readyz")
                return process, found[0]
            except OSError:
                pass
        if process.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit(f"{name} did not get ready:\n" + open(log).read())


def call(base, method, path, body=None):
    request = urllib.request.Request(base + path, method=method, data=json.dumps(body).encode() if body else None,
                                     headers={"Authorization": "Bearer " + key, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text[:1] in (b"{", b"[") else text


def replicated(txid_before):
    """Waits until Litestream has written a transaction after the last acknowledged one."""
    deadline = time.time() + 60
    while time.time() < deadline:
        newest = newest_change(replica)
        if newest > txid_before + 2:
            return
        time.sleep(0.2)
    sys.exit("Litestream does not follow")


def newest_change(folder):
    times = [os.path.getmtime(os.path.join(top, f)) for top, _, files in os.walk(folder) for f in files]
    return max(times, default=0)


def main():
    server, base = serve("server", data)
    follower, _ = start("litestream", litestream, "replicate", os.path.join(data, "journeyman.db"), "file://" + replica)
    worker = call(base, "POST", "/api/workers", {"title": "Litestream"})["id"]
    accepted, stop = [], threading.Event()

    def load():
        while not stop.is_set():
            try:
                answer = call(base, "POST", "/api/tasks", {"workerId": worker, "input": "Say hello."})
                accepted.append((re.search(r"tsk_\w+", json.dumps(answer))[0], time.time()))
            except OSError:
                return

    clients = [threading.Thread(target=load) for _ in range(4)]
    for c in clients:
        c.start()
    deadline = time.time() + 120
    time.sleep(6)
    while len(accepted) < 40 and time.time() < deadline:
        time.sleep(0.2)
    cut = time.time()
    replicated(cut)
    for process in (server, follower):  # under load, at the same moment
        process.send_signal(signal.SIGKILL)
    stop.set()
    for c in clients:
        c.join()
    server.wait(), follower.wait()

    os.makedirs(restored, mode=0o700)
    subprocess.run([litestream, "restore", "-integrity-check", "full", "-o", os.path.join(restored, "journeyman.db"),
                    "file://" + replica], check=True)
    _, base = serve("restored", restored)
    must = [task for task, at in accepted if at < cut]
    for task in must:
        call(base, "GET", "/api/tasks/" + task)
    doctor = subprocess.run([journeyman, "doctor", "--data", restored], capture_output=True, text=True,
                            env=dict(os.environ, JOURNEYMAN_MODEL="offline")).stdout
    if "no damage found" not in doctor or "as this program created it" not in doctor:
        sys.exit("the doctor is not content:\n" + doctor)
    if len(must) < 20:
        sys.exit(f"only {len(must)} tasks: the check proves nothing")
    print(f"{len(accepted)} tasks accepted, {len(must)} before the cut, all of them restored")


try:
    main()
finally:
    for process in started:
        if process.poll() is None:
            process.kill()
