//go:build !race

// The race detector makes every parser slower by another factor.

package archive

import (
	"archive/tar"
	"fmt"
	"io"
	"strings"
	"testing"

	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	read := func(format Format) func([]byte) {
		return func(in []byte) {
			archive := Input{Format: format, Name: "f", Data: in, Expired: never}
			_, _ = List(archive)
			_ = Walk(archive, func(_ Member, r io.Reader) error {
				_, _ = io.Copy(io.Discard, io.LimitReader(r, 16<<20))
				return nil
			})
		}
	}
	files := func(name func(i int) string) growthtest.Shape {
		return func(n int) string {
			all := make([]file, n/130) // the bytes of a file without contents
			for i := range all {
				all[i].name = name(i)
			}
			return string(packZip(t, all...))
		}
	}
	headers := func(name func(i int) string) growthtest.Shape {
		return func(n int) string {
			all := make([]tar.Header, n/1024)
			for i := range all {
				all[i] = tar.Header{Name: name(i), Typeflag: tar.TypeReg}
			}
			return string(packTar(t, all...))
		}
	}
	same := func(int) string { return "f" }
	numbered := func(i int) string { return fmt.Sprintf("f (%d)", i) }
	mixed := func(i int) string { return []string{"f", fmt.Sprintf("f (%d)", i)}[i%2] }
	// The confined process ends the readers after seconds, and a file that unpacks to much takes long.
	const most = 256 << 10
	growthtest.Check(t, []growthtest.Parser{
		{Name: "zip", Fuzz: []string{"FuzzWalk"}, Most: most, Read: read(Zip), Shapes: map[string]growthtest.Shape{
			"one name": files(same), "numbered names": files(numbered), "both": files(mixed),
			"bomb": func(n int) string {
				return string(packZip(t, file{name: "f", body: strings.Repeat("\x00", 64*n)}))
			}}},
		{Name: "tar", Most: most, Read: read(Tar), Shapes: map[string]growthtest.Shape{
			"one name": headers(same), "both": headers(mixed)}},
		{Name: "gzip", Most: most, Read: read(Gzip), Shapes: map[string]growthtest.Shape{
			"streams": func(n int) string { return strings.Repeat(string(gzipped(t, "", nil)), n/23) },
			"name":    growthtest.Times("\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x00", "a", "")}},
		{Name: "bzip2", Most: most, Read: read(Bzip2), Shapes: map[string]growthtest.Shape{"noise": growthtest.Times("BZh9", "1AY&SY", "")}},
		{Name: "zstd", Most: most, Read: read(Zstd), Shapes: map[string]growthtest.Shape{
			"noise": growthtest.Times("\x28\xb5\x2f\xfd", "\x28\xb5\x2f\xfd", "")}},
	})
}
