"""Tests of .ci/readme: run by `.ci/readme --self-test`.

Each test is a small repository with a README and, where it needs one, a real
server in Go that `go run .` starts.
"""

import importlib.machinery
import importlib.util
import os
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
loader = importlib.machinery.SourceFileLoader("readme", os.path.join(HERE, "readme"))
readme = importlib.util.module_from_spec(importlib.util.spec_from_loader("readme", loader))
loader.exec_module(readme)

SERVER = r"""
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "say" {
		fmt.Println(os.Args[2])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "--broken" {
		fmt.Println("no such thing")
		os.Exit(3)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:18473")
	if err != nil {
		panic(err)
	}
	fmt.Println("key jm_live_" + "0123456789012345678901234567890123456789abc")
	fmt.Fprintln(os.Stderr, "listening on http://"+ln.Addr().String())
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		}
		fmt.Fprintf(w, `{"id":"wrk_01h455vb4pex5vsknk084sn02q","created_at":17,"list":[1,2.5,null,true],"args":%q}`, os.Args[1:])
	})
	_ = http.Serve(ln, nil)
}
"""


def run(text, elsewhere=(), server=False, second=None):
    """Runs a README of its own repository: how much was wrong, and the log.

    A second text is a README in a folder of the repository."""
    log = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        files = {"README.md": text, "dir/file.txt": "content\n", ".gitignore": "ignored\n", "ignored": "x"}
        names = ["README.md"]
        if second is not None:
            files["room/README.md"] = second
            names.append("room/README.md")
        if server:
            files.update({"go.mod": "module sample\n\ngo 1.26\n", "main.go": SERVER})
        for name, content in files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
        wrong = readme.run_readme([os.path.join(folder, name) for name in names], elsewhere, log.append)
    return wrong, "\n".join(log)


def block(kind, *lines):
    return "\n".join(["```" + kind, *lines, "```", ""])


class Blocks(unittest.TestCase):
    def passes(self, text, **rest):
        wrong, log = run(text, **rest)
        self.assertEqual(wrong, 0, log)
        return log

    def fails(self, text, says, **rest):
        wrong, log = run(text, **rest)
        self.assertGreater(wrong, 0, log)
        self.assertIn(says, log)

    def test_state_carries_over(self):
        self.passes(block("sh", "NAME=value", "cd dir") + "\nThen:\n" + block("sh", 'echo "$NAME"; cat file.txt') + block("text", "value", "content"))

    def test_output_of_the_whole_block(self):
        self.passes(block("sh", "echo one", "# a remark", "", "echo two \\", "  three") + "\n" + block("text", "one", "two three"))

    def test_here_document_and_open_quote(self):
        self.passes(block("sh", "cat <<'X'", "a", "", "b", "X", "echo 'c", "d'") + block("text", "a", "", "b", "c", "d"))

    def test_ignored_files_are_not_copied(self):
        self.passes(block("sh", "ls -A") + block("text", ".gitignore", "README.md", "dir"))

    def test_wrong_output_is_a_diff(self):
        self.fails(block("sh", "echo one") + block("text", "two"), "-two\n+one")

    def test_missing_and_extra_lines(self):
        self.fails(block("sh", "printf 'a\\nb\\n'") + block("text", "a"), "+b")
        self.fails(block("sh", "echo a") + block("text", "a", "b"), "-b")

    def test_a_diff_does_not_hide_the_next(self):
        wrong, _ = run((block("sh", "echo one") + block("text", "two")) * 2)
        self.assertEqual(wrong, 2)

    def test_output_after_prose_is_listed(self):
        log = self.passes(block("sh", "echo one") + "\nprose\n\n" + block("text", "two") + block("json", "{}"))
        self.assertEqual(log.count("left out: "), 2)

    def test_failing_command(self):
        self.fails(block("sh", "true", "false", "echo not reached"), "FAILED at line 2")
        self.fails(block("sh", "echo to stderr >&2; exit 3"), "to stderr")

    def test_unset_variable(self):
        self.fails(block("sh", 'echo "$NOBODY_SET_THIS"'), "NOBODY_SET_THIS")

    def test_nothing_to_run(self):
        self.fails("# Empty\n", "no command")

    def test_unclosed_block(self):
        self.fails("```sh\necho\n", "never closed")

    def test_stderr_counts_where_stdout_differs(self):
        self.passes(block("sh", "echo out; echo err >&2") + block("text", "out"))
        self.passes(block("sh", "echo out; sleep 0.2; echo err >&2") + block("text", "out", "err"))

    def test_commands_have_no_input(self):
        self.passes(block("sh", "cat") + block("sh", "echo still here") + block("text", "still here"))

    def test_console(self):
        self.passes(block("console", "$ echo one", "one", "$ cd dir", "$ cat \\", "> file.txt", "content"))
        self.fails(block("console", "$ echo one", "two", "$ echo three", "three"), "-two\n+one")
        self.fails(block("console", "one"), "must begin")

    def test_skip(self):
        log = self.passes("<!-- ci: skip needs root -->\n" + block("sh", "false") + block("sh", "true"))
        self.assertIn("left out: line 2: ```sh: needs root", log)
        self.fails("<!-- ci: skip -->\n" + block("sh", "true"), "needs a reason")
        self.fails("<!-- ci: skipp x -->\n" + block("sh", "true"), "no marker")
        self.fails("<!-- ci: skip x -->\nprose\n" + block("sh", "true"), "right before")

    def test_elsewhere(self):
        log = self.passes(block("sh", "false --all", "true"), elsewhere=["false --all"])
        self.assertIn("false --all: run elsewhere", log)

    def test_indented_and_longer_fences(self):
        self.passes("- item\n\n  ```sh\n  echo one\n    echo two\n  ```\n\n  ```text\n  one\n  two\n  ```\n")
        self.passes("````sh\ncat <<'X'\n```\nX\n````\n" + "````text\n```\n````\n" + "\n~~~sh\ntrue\n~~~\n")

    def test_background_command(self):
        self.passes("<!-- ci: background -->\n" + block("sh", "echo first; sleep 100; echo never") + block("text", "first"))

    def test_what_a_block_leaves_running_is_ended(self):
        self.passes(block("sh", "sleep 99999 &", "echo started") + block("text", "started"))
        self.fails(block("sh", "sleep 99999 &", "false"), "FAILED")

    def test_second_file(self):
        first = block("sh", "NAME=value")
        log = self.passes(first, second=block("sh", 'echo "$NAME"', "ls README.md") + block("text", "value", "README.md"))
        self.assertIn("room/README.md, line 2", log)
        self.fails(first, "DIFFERS from room/README.md, line 4", second=block("sh", "echo one") + block("text", "two"))
        self.fails(first, "room/README.md, found no command", second="# Empty\n")

    def test_hidden_variables(self):
        os.environ["JOURNEYMAN_TEST"] = "x"
        self.addCleanup(os.environ.pop, "JOURNEYMAN_TEST")
        self.passes(block("sh", 'echo "${JOURNEYMAN_TEST:-none}"') + block("text", "none"))


class Servers(unittest.TestCase):
    def test_all_of_it(self):
        wrong, log = run(
            block("sh", "go run .") + block("text", "key jm_live_...") + "\nIn another terminal:\n" +
            block("sh", "curl -s http://127.0.0.1:18473/") +
            block("json", '{"created_at": 1, "list": [1, 2.5, null, true],', ' "id": "wrk_01j8zzzzzzzzzzzzzzzzzzzzzz", "args": "..."}') +
            block("sh", "ID=$(curl -s http://127.0.0.1:18473/ | jq -r .id)", 'echo "$ID"') + block("text", "wrk_01j8zzzzzzzzzzzzzzzzzzzzzz") +
            block("sh", "go run . say 'not a server'") + block("text", "not a server") +
            block("sh", "X='a b' go run . --second") + block("sh", "curl -s http://127.0.0.1:18473/ | jq -c .args") + block("text", '["--second"]') +
            "<!-- ci: stop -->\n" + block("sh", "! command curl -s http://127.0.0.1:18473/"),
            server=True)
        self.assertEqual(wrong, 0, log)

    def test_printed_key(self):
        wrong, log = run(block("sh", "go run .") + block("sh", "export KEY=jm_live_...", 'echo "${#KEY}"') + block("text", "51"), server=True)
        self.assertEqual(wrong, 0, log)

    def test_curl_fails_inside_a_pipe(self):
        wrong, log = run(block("sh", "go run .") + block("sh", "curl -s http://127.0.0.1:18473/missing | cat"), server=True)
        self.assertEqual(wrong, 1)
        self.assertIn("curl ended with status 22", log)

    def test_curl_of_nobody(self):
        wrong, log = run(block("sh", "echo $(curl -s http://127.0.0.1:18474/)"))
        self.assertEqual(wrong, 1)
        self.assertIn("curl ended with status 7", log)

    def test_curl_whose_reader_left(self):
        wrong, log = run(block("sh", "head -c 3000000 /dev/zero >big", "curl -s file://$PWD/big | head -c 1 | wc -c") + block("text", "1"))
        self.assertEqual(wrong, 0, log)

    def test_server_that_does_not_come_up(self):
        wrong, log = run(block("sh", "go run . --broken"), server=True)
        self.assertEqual(wrong, 1)
        self.assertIn("no such thing", log)

    def test_what_is_a_server(self):
        for code, want in {
            "go run .": True, "go run . --addr :0": True, "A=1 B='x y' ./journeyman --data d": True,
            "go run . run 'x'": False, "go run . --help": False, "./journeyman version": False, "go run ./x": False, "echo go run .": False,
        }.items():
            self.assertEqual(readme.starts_server(code), want, code)


class Compare(unittest.TestCase):
    def same(self, expected, actual):
        self.assertIsNone(readme.difference(expected, actual))

    def differ(self, expected, actual):
        self.assertIsNotNone(readme.difference(expected, actual))

    def test_volatile(self):
        self.same("tsk_01h455vb4pex5vsknk084sn02q took 1.5s", "tsk_01j8aaaaaaaaaaaaaaaaaaaaaa took 13ms")
        self.same("at 2026-01-02T03:04:05.678Z", "at 2027-11-12T13:14:15Z")
        self.same("http://127.0.0.1:8080/x?v=0123456789ab", "http://127.0.0.1:43123/x?v=ba9876543210")
        self.same("password: hunter2", "password: Zq9-_x")
        self.same("whsec_" + "A" * 32 + " whk_" + "b" * 43, "whsec_" + "B" * 32 + " whk_" + "c" * 43)
        self.same('"durationMs": 12, "created_at": 3', '"durationMs": 9, "created_at": 1700000000')
        self.differ("tsk_01h455vb4pex5vsknk084sn02q", "trn_01h455vb4pex5vsknk084sn02q")
        self.differ("127.0.0.1:80", "10.0.0.1:80")
        self.differ("credits 12", "credits 13")

    def test_ellipsis(self):
        self.same("a ... c\n...\nz", "a b c\n1\n2\nz")
        self.same("a\n…\nz", "a\nz")
        self.differ("a ... c", "a\nc")
        self.differ("a.c", "abc")

    def test_json(self):
        self.same('{"a": 1, "b": [true]}', '{"b":[true],"a":1}\n')
        self.same('{"a": "..."}', '{"a": {"deep": 1}}')
        self.same('{\n  "a": 1,\n  ...\n}', '{"a":1,"b":2,"c":[]}')
        self.same('{"a":1}\n{"a":2}', '{"a": 1}{"a": 2}')
        self.differ('{"a": 1}', '{"a": 1, "b": 2}')
        self.differ('{"a": 1}', '{"a": true}')
        self.differ('{"a": [1, 2]}', '{"a": [2, 1]}')
        self.differ('{"credits": 1}', '{"credits": 2}')

    def test_white_space(self):
        self.same("\na  \nb", "a\nb\n\n")
        self.differ("a\n\nb", "a\nb")


if __name__ == "__main__":
    unittest.main()
