package runner_test

import "slices"

// scenarios returns all tasks that the tests play.
func scenarios() []scenario {
	return slices.Concat(officeScenarios(), documentScenarios(), codeScenarios())
}

// codeScenarios returns tasks with programs.
func codeScenarios() []scenario {
	const total = "total() {\n\tsum=0\n\tfor n in \"$@\"; do sum=$((sum + n + 1)); done\n\techo $sum\n}\n"
	const mended = "total() {\n\tsum=0\n\tfor n in \"$@\"; do sum=$((sum + n)); done\n\techo $sum\n}\n"
	const test = ". ./total.sh\n[ \"$(total 1 2 3)\" = 6 ] && echo PASS || { echo FAIL; exit 1; }\n"
	return []scenario{
		{
			name:   "a failing test mended",
			files:  map[string]string{"total.sh": total, "total_test.sh": test},
			inputs: []string{"The test fails. Mend the program."},
			says: []reply{
				does(bash("sh total_test.sh")),
				does(read("total.sh")).after("FAIL"),
				does(edit("total.sh", "sum + n + 1", "sum + n")),
				does(bash("sh ./total_test.sh")),
				does(publish("total.sh")).after("PASS"),
				say("It added one too many."),
			},
			published: map[string]string{"total.sh": mended}, output: "It added one too many.",
		},
		{
			name:   "a function renamed in all files",
			files:  map[string]string{"a.go": "package p\n\nfunc Old() int { return 1 }\n", "b.go": "package p\n\nvar x = Old()\n", "c.go": "package p\n"},
			inputs: []string{"Rename Old to New."},
			says: []reply{
				does(use("search_files", "pattern", `\bOld\b`)),
				does(edit("a.go", "func Old()", "func New()"), edit("b.go", "Old()", "New()")).after("3:var x = Old()"),
				does(use("search_files", "pattern", `\bOld\b`), publish("a.go"), publish("b.go")),
				say("Renamed in two files."),
			},
			published: map[string]string{"a.go": "package p\n\nfunc New() int { return 1 }\n", "b.go": "package p\n\nvar x = New()\n"}, output: "Renamed in two files.",
		},
		{
			name:   "several edits at once",
			files:  map[string]string{"conf.py": "HOST = 'a'\nPORT = 1\nDEBUG = True\n"},
			inputs: []string{"Prepare it for production: host b, port 80, no debugging."},
			says: []reply{
				does(read("conf.py")),
				does(use("edit_file", "path", "conf.py", "edits", []map[string]string{{"old": "'a'", "new": "'b'"}, {"old": "PORT = 1", "new": "PORT = 80"}, {"old": "True", "new": "False"}})),
				does(publish("conf.py")).after("+PORT = 80"),
				say("It is ready."),
			},
			published: map[string]string{"conf.py": "HOST = 'b'\nPORT = 80\nDEBUG = False\n"}, output: "It is ready.",
		},
		{
			name:   "an edit that misses",
			files:  map[string]string{"main.py": "def greet(name):\n    return 'Hi ' + name\n"},
			inputs: []string{"Greet with Hello."},
			says: []reply{
				does(edit("main.py", "return 'Hey '", "return 'Hello '").failing("does not occur")),
				does(edit("main.py", "'Hi '", "'Hello '")).after("does not occur"),
				does(publish("main.py")),
				say("It says Hello now."),
			},
			published: map[string]string{"main.py": "def greet(name):\n    return 'Hello ' + name\n"}, output: "It says Hello now.",
		},
		{
			name:   "an unknown tool",
			files:  map[string]string{"x.txt": "needle\n"},
			inputs: []string{"Where is the needle?"},
			says: []reply{
				does(use("search_file", "pattern", "needle").failing("there is no tool")),
				does(use("search_files", "pattern", "needle")).after("search_files"),
				say("In line 1 of x.txt.").after("1:needle"),
			},
			output: "In line 1 of x.txt.",
		},
		{
			name:   "arguments that are wrong",
			files:  map[string]string{"x.txt": "one\n"},
			inputs: []string{"Read x.txt from line 9, and then all."},
			says: []reply{
				does(use("read_file").failing("path is required")),
				does(use("read_file", "path", "x.txt", "offset", 9).failing("offset must be at most")).after("path is required"),
				does(read("x.txt"), read("y.txt").failing("y.txt")),
				say("It has one line: one.").after("1\tone"),
			},
			output: "It has one line: one.",
		},
		{
			name:   "a script written and run",
			inputs: []string{"List the squares from 1 to 5 in a file."},
			says: []reply{
				does(write("squares.sh", "for i in 1 2 3 4 5; do echo $((i * i)); done\n")),
				does(bash("sh squares.sh > squares.txt && wc -l < squares.txt")),
				does(publish("squares.txt")).after("exit status: 0"),
				say("Five squares: see squares.txt."),
			},
			published: map[string]string{"squares.txt": "1\n4\n9\n16\n25\n"}, output: "Five squares: see squares.txt.",
		},
		{
			name:   "a command that fails",
			inputs: []string{"Build it."},
			says: []reply{
				does(bash("echo 'no rule to make it' >&2; exit 2")),
				say("There is no rule to make it, so I have built nothing.").after("no rule to make it", "exit status: 2"),
			},
			output: "There is no rule to make it, so I have built nothing.",
		},
		{
			name:   "errors counted in a log",
			files:  map[string]string{"app.log": "1 INFO a\n2 ERROR b\n3 ERROR c\n4 INFO d\n"},
			inputs: []string{"How many errors are there, and which?"},
			says: []reply{
				does(bash("grep -c ERROR app.log"), use("search_files", "pattern", "ERROR", "path", "app.log")),
				say("Two: b and c.").after("3:3 ERROR c"),
			},
			output: "Two: b and c.",
		},
		{
			name:   "a ledger with one more line",
			files:  map[string]string{"ledger.txt": "opening 100\n"},
			inputs: []string{"Book 10 as paid."},
			says: []reply{
				does(once(bash("echo 'paid 10' >> ledger.txt"))),
				does(read("ledger.txt"), publish("ledger.txt")),
				say("Booked.").after("2\tpaid 10"),
			},
			published: map[string]string{"ledger.txt": "opening 100\npaid 10\n"}, output: "Booked.",
		},
		{
			name: "commands that people approve", asks: []string{"shell"}, people: []verdict{{}, {}},
			files:  map[string]string{"old.txt": "old\n"},
			inputs: []string{"Move old.txt to archive/, and count the files there."},
			says: []reply{
				does(once(bash("mkdir archive && mv old.txt archive/"))),
				does(bash("ls archive | wc -l")),
				does(publish("archive/old.txt")).after("1"),
				say("One file is in the archive."),
			},
			published: map[string]string{"archive/old.txt": "old\n"}, output: "One file is in the archive.",
		},
		{
			name: "a command that nobody wants", asks: []string{"shell"}, people: []verdict{{deny: "never delete"}},
			files:  map[string]string{"keep.txt": "kept\n"},
			inputs: []string{"Tidy up."},
			says: []reply{
				does(bash("rm keep.txt").failing("never delete")),
				does(publish("keep.txt")).after("never delete"),
				say("I have deleted nothing."),
			},
			published: map[string]string{"keep.txt": "kept\n"}, output: "I have deleted nothing.",
		},
		{
			name: "the same call for ever", end: "failed: loop",
			files:  map[string]string{"queue.txt": "empty\n"},
			inputs: []string{"Wait until there is something in the queue."},
			says:   slices.Repeat([]reply{does(read("queue.txt"))}, 110),
		},
		{
			name: "a program in three instructions", inputs: []string{"Write hello.sh.", "Let it greet a name.", "Run it for Ann."},
			says: []reply{
				does(write("hello.sh", "echo Hello\n")),
				say("It is written."),
				does(edit("hello.sh", "Hello", "Hello $1"), publish("hello.sh")),
				say("It greets its first argument."),
				does(bash("sh hello.sh Ann")),
				say("It says: Hello Ann").after("stdout:\nHello Ann\n"),
			},
			published: map[string]string{"hello.sh": "echo Hello $1\n"}, output: "It says: Hello Ann",
		},
	}
}

// once marks a call that the model does not repeat after an interruption.
func once(a act) act { a.once = true; return a }
