package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// article is a typical document: headings, a list, a code block and text.
const article = `# Pocket Weather Station

[![build](https://ci.example.org/badge.svg)](https://ci.example.org)

The pocket weather station measures temperature, humidity and air pressure once a minute. It stores a
year of readings on the device and needs no cloud account. Readings can be copied over USB or sent to a
server of your own.

## Why another weather station

Most cheap weather stations send their readings to the maker's servers. When the maker shuts the
servers down, the station becomes useless. The pocket weather station keeps working, because the
readings never leave your house unless you say so.

## Installation

1. Connect the device to a computer with a USB cable.
2. Run the setup program and choose a name for the station.

` + "```sh\npocketweather setup --name balcony\n```" + `

The setup program writes the configuration file to the device. A setup takes about two minutes.

## Accuracy

The temperature sensor is accurate to 0.3 degrees between -20 and 60 degrees. Humidity readings drift by
about one percent a year, so the sensor should be calibrated every second year. Air pressure is measured
against a factory reference and needs no calibration.

## License

The firmware is free software under the MIT license.
`

func TestRunSummarises(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := invocation{dir: t.TempDir()}
	is.NoErr(os.WriteFile(filepath.Join(c.dir, "README.md"), []byte(article), 0o600))
	p := c.run(t, "run", "Summarise this document in five sentences and save it to summary.md", "--file", "README.md")
	if p.wait(t) != 0 {
		t.Fatal(p.stderr)
	}
	for name, out := range map[string]string{"progress": p.stderr.String(), "result": p.stdout.String()} {
		if strings.ContainsAny(out, "\x1b\r") {
			t.Errorf("the %s is not plain in a pipe: %q", name, out)
		}
	}
	for _, tool := range []string{"read_file", "write_file", "publish_file"} {
		is.True(regexp.MustCompile(`(?m)^ *\d+ +` + tool).MatchString(p.stderr.String())) // a line for each call
	}
	m := regexp.MustCompile(`(?m)^Published summary\.md \((\d+) bytes\): (\S+)$`).FindStringSubmatch(p.stdout.String())
	is.True(m != nil)
	path := m[2]
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.dir, path)
	}
	summary, err := os.ReadFile(path)
	is.NoErr(err)
	is.Equal(fmt.Sprint(len(summary)), m[1])
	checkSummary(t, string(summary))
	again := invocation{dir: c.dir}.run(t, "run", "hello") // the folder exists now
	is.Equal(again.wait(t), 0)
	storetest.Sound(t, filepath.Join(c.dir, "data"))
}

// checkSummary requires five sentences, each of them from the document.
func checkSummary(t *testing.T, summary string) {
	t.Helper()
	source := strings.Join(strings.Fields(article), " ")
	var sentences []string
	for _, line := range strings.Split(summary, "\n") {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "-*> 0123456789."))
		if line == "" || strings.HasPrefix(line, "#") || strings.HasSuffix(line, ":") {
			continue
		}
		for _, s := range regexp.MustCompile(`[.!?](?:\s+|$)`).Split(line, -1) {
			if s = strings.TrimSpace(s); s != "" {
				sentences = append(sentences, s)
			}
		}
	}
	if len(sentences) != 5 {
		t.Errorf("%d sentences: %s", len(sentences), summary)
	}
	for _, s := range sentences {
		if !strings.Contains(source, s) {
			t.Errorf("not in the document: %q", s)
		}
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := invocation{dir: t.TempDir()}
	p := c.run(t, "run", offlineScript("say so far", `tool read_file {"path":"none.txt"}`, "fail broken it is \x1b[31mbroken"))
	is.Equal(p.wait(t), 1)
	is.True(strings.Contains(p.stderr.String(), "journeyman: the task did not complete: broken: it is"))
	is.True(regexp.MustCompile(`(?m)^ *1 +failed: .*none\.txt`).MatchString(p.stderr.String())) // the tool's own failure
	is.True(!strings.Contains(p.stderr.String()+p.stdout.String(), "\x1b"))                     // a model cannot control the terminal
	p = c.run(t, "run", offlineScript("dance"))
	is.Equal(p.wait(t), 1)
	is.True(strings.Contains(p.stderr.String(), "line 1: unknown statement"))
}

func TestRunIsInterrupted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	p := invocation{}.start(t, "--data", dir, "run", offlineScript(`tool write_file {"path":"a.txt","content":"x"}`, "wait 700ms", "say done"))
	p.await(t, p.stderr, regexp.MustCompile(`1 +write_file`))
	p.signal(t, syscall.SIGINT)
	is.Equal(p.wait(t), 1)
	m := regexp.MustCompile(`\njourneyman: interrupted: task (tsk_\S+) continues at the next start\n$`).FindStringSubmatch(p.stderr.String())
	is.True(m != nil)
	s := serve(t, dir)
	v := s.until(t, s.taskOf(t, m[1]), func(v seenRun) bool { return v.Status == "completed" })
	is.Equal(v.OutputText, "done")
}

// taskOf finds the worker of a task.
func (s *instance) taskOf(t *testing.T, id string) (v seenRun) {
	t.Helper()
	v.ID, v.Metadata.TaskID = s.mustGet(t, "/api/tasks/"+id).Task.WorkerID, id
	return v
}

func TestRunOnATerminal(t *testing.T) {
	t.Parallel()
	script := offlineScript(`tool read_file {"path":"none.txt"}`, "wait 400ms", "say done")
	for name, tt := range map[string]struct {
		env   []string
		color bool
	}{
		"plain":    {color: true},
		"NO_COLOR": {env: []string{"NO_COLOR=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			out := onTerminal(t, tt.env, "--data", t.TempDir(), "run", script)
			is.True(strings.Contains(out, "done"))
			is.Equal(strings.ContainsAny(out, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"), true) // the spinner is shown
			is.Equal(regexp.MustCompile("\x1b\\[[0-9;]*m").MatchString(out), tt.color)
			is.True(strings.Contains(out, "failed: "))
		})
	}
}

// TestRunAsks has a person at the terminal decide on tool calls. Without a terminal they are
// denied.
func TestRunAsks(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	script := offlineScript(`tool write_file {"path":"a.txt","content":"x"}`, "say {{last}}")
	args := []string{"--data", t.TempDir(), "run", "--ask", "write_file", script}
	out := onTerminalTyping(t, nil, "y\n", args...)
	is.True(strings.Contains(out, `wants to run: {"path":"a.txt","content":"x"}`))
	is.True(!strings.Contains(out, "denied"))
	is.True(strings.Contains(onTerminalTyping(t, nil, "n\n", args...), "a person has denied this call"))
	p := invocation{stdin: strings.NewReader("y\n")}.run(t, args...)
	is.True(strings.Contains(p.stdout.String(), "denied this call: nobody was there to approve it"))
}

// onTerminal runs the program to its end on a terminal and returns its output.
func onTerminal(t *testing.T, env []string, args ...string) string {
	t.Helper()
	return onTerminalTyping(t, env, "", args...)
}

// onTerminalTyping runs the program on a terminal with input that is typed ahead.
func onTerminalTyping(t *testing.T, env []string, typed string, args ...string) string {
	t.Helper()
	terminal, end, err := pty.Open()
	is.New(t).NoErr(err)
	defer terminal.Close()
	cmd := exec.Command(programPath(t), args...)
	cmd.Env = programEnv(append([]string{"TERM=xterm-256color"}, env...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = end, end, end
	is.New(t).NoErr(cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // the process has ended unless the test failed
	is.New(t).NoErr(end.Close())
	if _, err := terminal.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	shown := newPrinted()
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := terminal.Read(b)
			_, _ = shown.Write(b[:n])
			if err != nil {
				return // EIO: the other end is closed
			}
		}
	}()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, shown)
	}
	<-read
	return shown.String()
}
