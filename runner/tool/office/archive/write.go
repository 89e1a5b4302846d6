package archive

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// Head is the first line of each XML file.
const Head = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"

// Pack returns an archive of files. Its arguments are a name, its contents, the next name,
// and so on.
func Pack(files ...string) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := z.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		if err != nil {
			return nil, fmt.Errorf("pack document: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack document: %w", err)
	}
	return b.Bytes(), nil
}

// Escape returns a text as XML. It replaces characters that XML does not allow by U+FFFD.
func Escape(content string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(content)) // a strings.Builder returns no errors
	return b.String()
}
