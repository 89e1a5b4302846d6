package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/alecthomas/kong"
)

// maxSecret bounds a file that holds a secret, in bytes.
const maxSecret = 64 << 10

// readSecrets sets the secrets of flags that files hold. The flags are those of one command: another
// command may have the same flags, and a file may be readable once. A secret has a flag NAME and a flag NAME-file:
// every user of the machine can read the command line in the list of processes. Errors
// name the flag and the file, and never show the content of the file.
func readSecrets(flags []*kong.Flag, stdin io.Reader) error {
	byName := map[string]*kong.Flag{}
	for _, f := range flags {
		byName[f.Name] = f
	}
	fromStdin := ""
	for _, f := range flags {
		name, isFile := strings.CutSuffix(f.Name, fileSuffix)
		secret, file := byName[name], f.Target.String()
		if !isFile || secret == nil {
			continue
		}
		if file == "" && secret.Target.String() == "" {
			file = credential(name)
		}
		if file == "" {
			continue
		}
		if secret.Target.String() != "" {
			return fmt.Errorf("--%[1]s and --%[1]s-file: give only one of them, also by their environment variables",
				name)
		}
		if file == "-" {
			// The first flag would read all of standard input.
			if fromStdin != "" {
				return fmt.Errorf("--%s-file and --%s-file: only one of them can read standard input", fromStdin, name)
			}
			fromStdin = name
		}
		text, err := readSecret(stdin, file)
		if err != nil {
			return fmt.Errorf("--%s-file: %w", name, err)
		}
		secret.Target.SetString(text)
	}
	return nil
}

// credential returns the file of a credential that systemd has loaded for this process
// (LoadCredential=), "" if there is none of that name.
func credential(name string) string {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" || filepath.Base(name) != name {
		return ""
	}
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// readSecret returns the secret in a file, without line breaks at its end.
func readSecret(stdin io.Reader, file string) (string, error) {
	in, name := stdin, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in, name = f, file
	}
	// One byte more than the limit shows that there is more. The file may be a device.
	raw, err := io.ReadAll(io.LimitReader(in, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	text := strings.TrimRight(string(raw), "\r\n")
	switch {
	case len(raw) > maxSecret:
		return "", fmt.Errorf("%s has more than %d bytes", name, maxSecret)
	case text == "":
		return "", fmt.Errorf("%s is empty", name)
	}
	return text, nil
}

// An Environment reads environment variables. Where NAME is not set, it reads the file that
// NAME_FILE names, or the credential NAME of systemd: both provide secrets as files. It reads each
// file once. Its methods are safe for concurrent use.
type Environment struct {
	getenv func(string) string

	mu     sync.Mutex
	values map[string]string // of the variables that were asked for
	err    error             // of the first file that could not be read
}

// NewEnvironment returns an environment with the variables that getenv returns, as os.Getenv does.
func NewEnvironment(getenv func(string) string) *Environment {
	return &Environment{getenv: getenv, values: map[string]string{}}
}

// Get returns the value of a variable, or an empty text. Check returns its error later.
func (e *Environment) Get(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	v, ok := e.values[name]
	if !ok {
		var err error
		if v, err = e.read(name); err != nil {
			// Providers take a plain getenv, which has no error. Check returns it later.
			e.err = cmp.Or(e.err, err)
		}
		e.values[name] = v
	}
	return v
}

func (e *Environment) read(name string) (string, error) {
	if v := e.getenv(name); v != "" {
		return v, nil
	}
	file, source := e.getenv(name+"_FILE"), name+"_FILE"
	if file == "" {
		file, source = credential(name), "credential "+name
	}
	if file == "" {
		return "", nil
	}
	text, err := readSecret(strings.NewReader(""), file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	return text, nil
}

// Check reads the named variables and returns the first error of any Get.
func (e *Environment) Check(names ...string) error {
	for _, name := range names {
		e.Get(name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}
