#!/usr/bin/env python3
"""Uses a server through a proxy as clients do: proxies-check.py PROXY_URL KEY PASSWORD"""

import http.cookiejar
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

base, key, password = sys.argv[1:]


def call(path, data=None, method=None, **header):
    request = urllib.request.Request(base + path, data=data, method=method)
    request.add_header("Authorization", "Bearer " + key)
    for name, value in header.items():
        request.add_header(name.replace("_", "-"), value)
    return urllib.request.urlopen(request, timeout=60)


def post(path, value):
    return json.load(call(path, json.dumps(value).encode(), Content_Type="application/json"))


def check(holds, what):
    if not holds:
        sys.exit(f"through the proxy: {what}")


# A stream arrives piece by piece: the second piece comes a second after the first.
script = "```offline\nsay first \nwait 1500ms\nsay second\n```"
body = json.dumps({"input": script, "stream": True}).encode()
times = []
with call("/api/tasks", body, Content_Type="application/json") as stream:
    check("text/event-stream" in stream.headers["Content-Type"], "the answer is no stream")
    for line in stream:
        if line.startswith(b"data:"):
            times.append(time.monotonic())
check(len(times) > 2, f"the stream has {len(times)} events")
check(max(b - a for a, b in zip(times, times[1:])) > 0.7, "the stream was buffered: all events came at once")

# A large upload reaches the server, and one that is too large gets the server's own error.
boundary = "end-of-the-part"


def upload(size):
    form = (f"--{boundary}\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\nhello\r\n"
            f"--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n"
            f"Content-Type: application/octet-stream\r\n\r\n").encode() + b"x" * size + f"\r\n--{boundary}--\r\n".encode()
    return call("/api/tasks", form, Content_Type=f"multipart/form-data; boundary={boundary}")


check(json.load(upload(24 << 20))["status"] == "completed", "an upload of 24 MiB fails")
try:
    upload(26 << 20)
    check(False, "a file that is too large is accepted")
except urllib.error.HTTPError as refused:
    check(refused.code == 413 and b'"error"' in refused.read(), f"a file that is too large gets {refused.code}, not the server's error")

# A user signs in: the form, its cookie and the page after it.
jar = http.cookiejar.CookieJar()
person = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
form = urllib.parse.urlencode({"email": "owner@localhost", "password": password}).encode()
sign_in = urllib.request.Request(base + "/sign-in", data=form, headers={"Origin": base})
page = person.open(sign_in, timeout=60)
check(len(jar) > 0 and "/sign-in" not in page.geturl(), f"the sign-in ends at {page.geturl()}")

# The server must recognize that a request comes from elsewhere, with any headers of a client:
# /metrics is only for clients on this machine.
try:
    call("/metrics", X_Forwarded_For="127.0.0.1")
    check(False, "/metrics answers")
except urllib.error.HTTPError as refused:
    check(refused.code == 403, f"/metrics answers {refused.code}")
print("streams, uploads, and a sign-in pass", base)
