package command

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"journeyman/store"
)

const (
	maxBinary      = 512 << 20 // bytes of a binary, and of an archive
	maxSums        = 1 << 20   // bytes of a file with checksums
	fetchPatience  = 15 * time.Minute
	binaryPatience = 30 * time.Second // for the new binary to print its version
	tryPatience    = time.Hour        // for an upgrade of a large database
	sumsName       = "checksums.txt"
	programName    = "journeyman"
)

// fetchBinary writes the binary that from names to the file to, executable and synced. from is a
// file or an https address of a binary or an archive. Its checksum must be in sums, a file or an
// address. A file from a local folder needs none.
func fetchBinary(ctx context.Context, from, sums, to string, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	want, err := wantedSum(ctx, from, sums)
	if err != nil {
		return err
	}
	src, err := open(ctx, from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
	if err != nil {
		return fmt.Errorf("write beside this binary: %w", err)
	}
	hash := sha256.New()
	bounded := &io.LimitedReader{R: src, N: maxBinary + 1}
	err = unpack(dst, io.TeeReader(bounded, hash))
	if err == nil {
		// The sum covers the whole file, but the end of an archive may be unread.
		_, err = io.Copy(hash, bounded)
	}
	if bounded.N == 0 {
		err = fmt.Errorf("it has more than %d bytes", int64(maxBinary))
	}
	err = errors.Join(err, dst.Chmod(0o755), dst.Sync(), dst.Close())
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	got := hex.EncodeToString(hash.Sum(nil))
	switch want {
	case "":
		fmt.Fprintf(out, "%s has no checksum beside it; its SHA-256 is %s\n", from, got)
	case got:
		fmt.Fprintln(out, "the checksum is right")
	default:
		return fmt.Errorf("%s: its SHA-256 is %s, but must be %s", from, got, want)
	}
	return nil
}

// unpack writes a binary, which may be in a compressed tar archive.
func unpack(dst io.Writer, src io.Reader) error {
	buffered := bufio.NewReader(src)
	if magic, err := buffered.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		_, err := io.Copy(dst, buffered)
		return err
	}
	z, err := gzip.NewReader(buffered)
	if err != nil {
		return err
	}
	for t := tar.NewReader(io.LimitReader(z, 2*maxBinary)); ; {
		h, err := t.Next()
		if err == io.EOF {
			return fmt.Errorf("the archive has no file %s", programName)
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeReg && path.Base(h.Name) == programName {
			if h.Size > maxBinary {
				return fmt.Errorf("the binary in it has more than %d bytes", int64(maxBinary))
			}
			if _, err = io.Copy(dst, t); err == nil {
				_, err = io.Copy(io.Discard, buffered) // so that the hash covers the rest
			}
			return err
		}
	}
}

// wantedSum returns the checksum of the file from, "" if none is known.
func wantedSum(ctx context.Context, from, sums string) (string, error) {
	name := path.Base(filepath.ToSlash(from))
	optional := sums == "" && !isAddress(from)
	if isAddress(from) {
		u, err := url.Parse(from)
		if err != nil {
			return "", fmt.Errorf("--from: %w", err)
		}
		name = path.Base(u.Path)
		if sums == "" {
			sums = u.ResolveReference(&url.URL{Path: sumsName}).String()
		}
	}
	if sums == "" {
		sums = filepath.Join(filepath.Dir(from), sumsName)
	}
	f, err := open(ctx, sums)
	if optional && errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("checksums: %w", err)
	}
	defer f.Close()
	return findSum(io.LimitReader(f, maxSums), name, sums)
}

// findSum returns the sum of the named file in the format of sha256sum.
func findSum(r io.Reader, name, sums string) (string, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		sum, file, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		file = strings.TrimPrefix(strings.TrimSpace(file), "*") // of binary mode
		if path.Base(file) != name {
			continue
		}
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
			return "", fmt.Errorf("%s: the sum of %s is no SHA-256", sums, name)
		}
		return strings.ToLower(sum), nil
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("read %s: %w", sums, err)
	}
	return "", fmt.Errorf("%s has no sum of %s", sums, name)
}

func isAddress(from string) bool { return strings.Contains(from, "://") }

// open opens a file or an https address.
func open(ctx context.Context, from string) (io.ReadCloser, error) {
	if !isAddress(from) {
		return os.Open(from)
	}
	u, err := url.Parse(from)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" {
		return nil, fmt.Errorf("%s: only https:// addresses are safe enough for a program", u.Redacted())
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	client := onceClient()
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if req.URL.Scheme != "https" || len(via) > 5 {
			return errors.New("it redirects away from https://, or too often")
		}
		return nil
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s: the server answers %s", u.Redacted(), resp.Status)
	}
	return resp.Body, nil
}

// readBinary runs a binary to read its version. This also shows that this machine can run the
// binary.
func readBinary(ctx context.Context, file string) (b Build, err error) {
	out, err := runBinary(ctx, binaryPatience, file, nil, "version", "--json")
	if err == nil {
		err = json.Unmarshal(out, &b)
	}
	if err == nil && (b.Version == "" || b.Database == 0) {
		err = errors.New("it prints no version")
	}
	if err != nil {
		return b, fmt.Errorf("this machine cannot run %s as Journeyman: %w", filepath.Base(file), err)
	}
	return b, nil
}

// systemVariables returns the names of environment variables that every program may need.
func systemVariables() []string {
	return []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ"}
}

// folderVariables returns the names of the settings that a start needs to open the data folder.
// None is a secret: the new binary needs no key, because it opens no connection before it serves.
func folderVariables() []string {
	return []string{"JOURNEYMAN_CONFIG", "JOURNEYMAN_TIMEZONE", "JOURNEYMAN_QUEUE_LIMIT", "JOURNEYMAN_QUEUE_TOTAL",
		"JOURNEYMAN_DISK_RESERVE", "JOURNEYMAN_DISK_WARNING", "JOURNEYMAN_LOG_FORMAT", "JOURNEYMAN_LOG_LEVEL"}
}

// runBinary returns the output of a binary. The binary gets the variables of the system and the
// named ones, but no others: the environment of the operator may hold other secrets.
func runBinary(ctx context.Context, patience time.Duration, file string, variables []string, args ...string) (
	[]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Env, cmd.WaitDelay = []string{}, time.Second // an empty list: nil would mean everything
	for _, name := range append(systemVariables(), variables...) {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, firstLine(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// tryNew makes the new binary open the data folder. It is for a stopped server, where no readiness
// shows that the binary works.
func (u *upgrade) tryNew() error {
	version, err := store.FolderVersion(u.Context, u.Data)
	if err != nil || version == 0 {
		return err
	}
	_, err = runBinary(u.Context, tryPatience, u.path, folderVariables(), "upgrade", "--try", "--data", u.Data)
	return err
}

// line returns the Build in one line.
func (b Build) line() string {
	text := b.Version
	if len(b.Commit) >= 12 {
		text += " (" + b.Commit[:12] + ")"
	}
	return printable(text)
}
