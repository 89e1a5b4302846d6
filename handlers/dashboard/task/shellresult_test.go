package task

import (
	"encoding/json"
	"testing"

	"github.com/matryer/is"
)

func TestShellResult(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		output string
		want   shellResult
		ok     bool
	}{
		"text": {`"exit status: 3\nstdout:\none\nstderr:\ntwo\n"`, shellResult{ExitCode: 3,
			Output: "one\nstderr:\ntwo\n"}, true},
		"errors":    {`"exit status: 0\nstderr:\ntwo\n"`, shellResult{Output: "stderr:\ntwo\n"}, true},
		"no output": {`"exit status: 0\n(no output)\n"`, shellResult{Output: "(no output)\n"}, true},
		"killed": {`"exit status: 137\nstopped: it was killed\nnote: full\nstdout:\nnote: mine\n"`,
			shellResult{ExitCode: 137, Stopped: "it was killed", Note: "full", Output: "note: mine\n"}, true},
		"no more":      {`"exit status: 1"`, shellResult{ExitCode: 1}, true},
		"empty lines":  {`"exit status: 1\nstopped: \nnote: \n\n"`, shellResult{ExitCode: 1, Output: "\n"}, true},
		"object":       {`{"exitCode":2,"output":"x","stopped":"s","note":"n"}`, shellResult{2, "x", "s", "n"}, true},
		"other text":   {`"exit status: many\n"`, shellResult{}, false},
		"another text": {`"stdout:\nexit status: 0\n"`, shellResult{}, false},
		"no result":    {``, shellResult{}, false},
		"number":       {`3`, shellResult{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			r, ok := shellResultOf(json.RawMessage(tt.output))
			is.Equal(r, tt.want)
			is.Equal(ok, tt.ok)
		})
	}
}
