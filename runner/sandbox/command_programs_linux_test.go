//go:build amd64 || arm64

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"journeyman/runner/workspace"

	"github.com/matryer/is"
)

// honestPrograms are typical uses of a shell, by program. Each script must succeed and print
// "well" as its last line. Programs of a basic system always run. The others run if PROGRAMS is
// "all", as in ".ci/run sandbox".
var honestPrograms = []struct{ program, name, script string }{
	{"bash", "processes and pipes", `for i in $(seq 50); do echo $((i % 7)) & done | sort | uniq -c | awk '{n += $1} END {if (n == 50) print "well"}'`},
	{"bash", "here documents and arrays", "a=(one two three); cat <<< \"${a[1]}\" | grep -q two && diff <(echo x) <(echo x) && echo well"},
	{"bash", "jobs and traps", `trap 'echo well' EXIT; sleep 100 & kill $!; wait $! || true`},
	{"cp", "files", `mkdir -p a/b && seq 1000 > a/b/f && cp -a a c && mv c d && ln d/b/f hard && ln -s d/b/f soft && touch -d yesterday soft &&
		chmod 600 hard && cmp hard soft && du -sk . && df . && sync hard && truncate -s 1M sparse && stat -c %s sparse && rm -r a d hard soft sparse && echo well`},
	{"cp", "sorting and archives", `seq 200000 | sort -R | sort -n -S 10M | tail -n 1 && seq 1000 > f && tar czf f.tgz f && tar tzf f.tgz &&
		split -n 3 f && cat xaa xab xac | sha256sum -c <(sha256sum - < f) && dd if=/dev/zero bs=1M count=3 | wc -c && echo well`},
	{"cp", "times and limits", `timeout 1 sleep 100; test $? = 124 && nice true && nohup true && nproc && env -i true && mktemp && id && echo well`},
	{"python3", "threads and processes", `cat > p.py <<'E'
import concurrent.futures, hashlib, multiprocessing, os, subprocess, tempfile, threading
def work(n): return hashlib.sha256(b"x" * n).hexdigest()
if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(4) as p: a = list(p.map(work, range(100)))
    with concurrent.futures.ThreadPoolExecutor(20) as t: assert a == list(t.map(work, range(100)))
    q, v = multiprocessing.Queue(), multiprocessing.Value("i", 0)
    c = multiprocessing.Process(target=q.put, args=("well",)); c.start(); said = q.get(); c.join()
    with v.get_lock(): v.value += 1
    from multiprocessing.shared_memory import SharedMemory
    s = SharedMemory(create=True, size=1 << 20); s.buf[0] = 7; SharedMemory(s.name).close(); s.close(); s.unlink()
    assert subprocess.run(["echo", "x"], capture_output=True).stdout == b"x\n"
    with tempfile.TemporaryFile() as f: os.posix_fallocate(f.fileno(), 0, 10000); assert os.fstat(f.fileno()).st_size == 10000
    print(said)
E
python3 p.py`},
	{"python3", "a server and its client", `cat > s.py <<'E'
import http.server, socket, threading, urllib.request
for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    class Server(http.server.ThreadingHTTPServer): address_family = family
    s = Server((host, 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    at = "[::1]" if family == socket.AF_INET6 else "localhost"
    assert b"import http.server" in urllib.request.urlopen(f"http://{at}:{s.server_port}/s.py").read()
a, b = socket.socketpair(); a.sendall(b"x"); assert b.recv(1) == b"x"
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"y", u.getsockname()); assert u.recv(1) == b"y"
print("well")
E
python3 s.py 2> log`},
	{"python3", "memory that processes share", `cat > m.py <<'E'
import os, time
b = bytearray(os.urandom(1 << 20) * 400)
for pause in 0.4, 0.2, 0.1, 0.05, 0.3:
    for _ in range(8):
        if os.fork() == 0: time.sleep(pause); os._exit(0)
    for _ in range(8): assert os.wait()[1] == 0
print("well")
E
python3 m.py`},
	{"python3", "a virtual environment", `python3 -m venv venv && mkdir lib && cat > lib/setup.py <<'E'
from setuptools import setup
setup(name="tried", version="1", py_modules=["tried"])
E
echo 'word = "well"' > lib/tried.py && venv/bin/pip --version && (cd lib && ../venv/bin/python setup.py -q install 2> log) &&
		cd / && /workspace/venv/bin/python -c 'import sys, tried; assert sys.prefix.endswith("venv"); print(tried.word)'`},
	{"node", "WebAssembly", `cat > w.js <<'E'
const add = new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11]);
WebAssembly.instantiate(add).then(({instance}) => {
  const memories = Array.from({length: 10}, () => new WebAssembly.Memory({initial: 1, maximum: 65536}));
  memories[0].grow(100);
  if (instance.exports.add(2, 3) === 5) console.log("well");
});
E
node w.js`},
	{"node", "workers, a server, children", `cat > s.js <<'E'
const http = require("http"), {Worker} = require("worker_threads"), {execFileSync} = require("child_process"), fs = require("fs");
fs.copyFileSync("s.js", "copy.js");
const shared = new SharedArrayBuffer(1024);
new Worker("require('worker_threads').parentPort.postMessage('x')", {eval: true}).on("message", () => {
  const server = http.createServer((_, res) => res.end(execFileSync("echo", ["well"])));
  server.listen(0, () => http.get({port: server.address().port}, res => res.on("data", d => process.stdout.write(d)).on("end", () => server.close())));
});
E
node s.js`},
	{"git", "a repository", `git init -q r && cd r && git config user.email w@example.com && git config user.name w && seq 1000 > f && git add f && git commit -qm one &&
		git checkout -qb b && echo x >> f && git commit -qam two && git checkout -q - && git merge -q b && git gc -q && git clone -q . ../r2 && git -C ../r2 log --oneline |
		wc -l | grep -q 2 && git fsck && echo well`},
	{"sqlite3", "a database", `sqlite3 d.db "PRAGMA journal_mode=WAL; CREATE TABLE t (a, b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)
		INSERT INTO t SELECT i, hex(randomblob(20)) FROM n; CREATE INDEX i ON t (b); VACUUM; PRAGMA integrity_check;" && sqlite3 d.db "SELECT 'well' FROM t LIMIT 1"`},
	{"pandoc", "documents", `printf '# Title\n\nSome *text* and a table:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n' > in.md && pandoc in.md -o out.docx && pandoc out.docx -t html |
		grep -q '<em>text</em>' && pandoc in.md -s -o out.epub && echo well`},
	{"java", "a virtual machine", `keytool -genkeypair -alias a -keyalg RSA -storepass changeit -dname CN=x -keystore k 2> log &&
		keytool -list -storepass changeit -keystore k | grep -q PrivateKeyEntry && java -Xmx256m -version && echo well`},
	{"chromium", "a page as PDF", `echo '<h1>Title</h1><canvas></canvas><script>document.body.append(new Date())</script>' > p.html &&
		chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf=out.pdf p.html 2> log; head -c 4 out.pdf | grep -q %PDF && echo well`},
}

// TestHonestPrograms checks that the sandbox does not prevent typical uses.
func TestHonestPrograms(t *testing.T) {
	for name, s := range confinements(t, ShellConfig{}) {
		t.Run(name, func(t *testing.T) {
			for _, tt := range honestPrograms {
				if tt.program != "bash" && tt.name != "files" && os.Getenv("PROGRAMS") != "all" {
					continue
				}
				t.Run(tt.program+": "+tt.name, func(t *testing.T) { runHonest(t, s, tt.script) })
			}
		})
	}
}

// TestHonestProgramsAsOrdinaryUser runs them in a service without root privileges.
func TestHonestProgramsAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() == 0 && os.Getenv("PROGRAMS") == "all" {
		asNobody(t, "^TestHonestPrograms$")
	}
}

// TestOfficeProgram converts a text with LibreOffice, whose start reads a folder in /etc.
func TestOfficeProgram(t *testing.T) {
	if _, err := exec.LookPath("soffice"); err != nil {
		t.Skip("this machine has no soffice")
	}
	runHonest(t, shell(t, ShellConfig{}), `printf 'Some text\n' > in.txt &&
		soffice --headless --convert-to doc:"MS Word 97" in.txt > log 2>&1 && soffice --headless --convert-to docx in.doc >> log 2>&1 &&
		head -c 2 in.docx | grep -q PK && echo well`)
}

func runHonest(t *testing.T, s *Shell, script string) {
	t.Helper()
	w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
	r := ran(t, s, w, Command{Script: script, Timeout: 2 * time.Minute})
	t.Logf("%v", r.Duration)
	if lines := strings.Split(strings.TrimSpace(r.Output), "\n"); r.ExitCode != 0 || r.Stopped != "" || lines[len(lines)-1] != "well" {
		log, _ := w.ReadFile("log", 0, 10<<10)
		t.Fatalf("it ended with %d %q after %v:\n%s\n%s", r.ExitCode, r.Stopped, r.Duration, r.Output, log)
	}
}

// confinements returns a Shell for each way in which this machine can confine commands: with
// and without control groups, and without Landlock.
func confinements(t *testing.T, cfg ShellConfig) map[string]*Shell {
	t.Helper()
	s := shell(t, cfg)
	without := *s
	without.groups = nil
	plain := without
	plain.noLandlock, plain.report.Layers = true, []string{layerLandlock}
	all := map[string]*Shell{"without groups": &without, "without Landlock": &plain}
	if s.groups != nil {
		all["with groups"] = s
	}
	return all
}

// TestProgramsAreStarted checks the programs of this machine. Those that every build has are certain.
func TestProgramsAreStarted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := shell(t, ShellConfig{})
	w := open(t, filepath.Join(t.TempDir(), "ws"), workspace.Limits{})
	started, err := s.StartedPrograms(t.Context(), w)
	is.NoErr(err)
	t.Log(started)
	found := s.Programs()
	for _, name := range started {
		name, _, _ = strings.Cut(name, " (with ")
		is.True(slices.Contains(found, name)) // a program without a file
	}
	// A file that does not start is no program.
	r := ran(t, s, w, Command{Script: "mkdir bin; printf '#!/bin/sh\nexit 127\n' > bin/jq; printf '#!/bin/sh\n' > bin/git\n" +
		"chmod +x bin/*; PATH=$PWD/bin:$PATH\n" + probeScript([]string{"jq", "git", "no-such-program"})})
	is.Equal(r.Output, "program:git\n")
}
