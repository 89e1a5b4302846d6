package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"journeyman/runner/tool/pdfwriter"
	"journeyman/runner/workspace"
)

// maxPDFPictures is the maximum number of bytes of all pictures of a PDF document.
const maxPDFPictures = 24 << 20

// writePDF returns the PDF document that a Markdown text becomes in the file at file, which is not written. The
// confined process has no files: it names the pictures of the text, and gets their bytes in a second run.
func (d Documents) writePDF(ctx context.Context, ws *workspace.Workspace, file, content string) (
	document []byte, r pdfwriter.Report, err error) {
	if strings.HasPrefix(strings.TrimSpace(content), "%PDF-") {
		return nil, r, Errorf("content: a PDF document is made of Markdown, not of the source of a PDF")
	}
	in := pdfwriter.Input{Markdown: content, Made: time.Now().UTC()}
	r, document, err = d.runPDFWriter(ctx, in)
	if err != nil || len(r.Pictures) == 0 {
		return document, r, err
	}
	var lacks []string
	in.Pictures, lacks, err = pdfPictures(ws, path.Dir(file), r.Pictures)
	if err == nil && len(in.Pictures) > 0 {
		r, document, err = d.runPDFWriter(ctx, in)
	}
	r.Notes = append(lacks, r.Notes...)
	return document, r, err
}

// runPDFWriter runs the filter.
func (d Documents) runPDFWriter(ctx context.Context, in pdfwriter.Input) (pdfwriter.Report, []byte, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return pdfwriter.Report{}, nil, fmt.Errorf("write PDF: %w", err)
	}
	out, err := d.write(ctx, pdfWriter, "PDF document", string(input))
	if err != nil {
		return pdfwriter.Report{}, nil, err
	}
	return pdfwriter.Split(out)
}

// pdfPictures returns the contents of the pictures at some addresses, and a note on each one that is missing. The
// addresses are relative to the folder of the document, or to the workspace.
func pdfPictures(ws *workspace.Workspace, folder string, addresses []string) (
	found map[string][]byte, lacks []string, err error) {
	found = map[string][]byte{}
	left := int64(maxPDFPictures)
	for _, address := range addresses {
		data, err := pdfPicture(ws, folder, address, left)
		if refused, ok := explain(err).(*Error); ok {
			lacks = append(lacks, fmt.Sprintf("The picture %q is not shown, but its description: %s.", address, refused.Message))
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		found[address] = data
		left -= int64(len(data))
	}
	return found, lacks, nil
}

// pdfPicture returns the contents of one picture, of at most most bytes.
func pdfPicture(ws *workspace.Workspace, folder, address string, most int64) ([]byte, error) {
	if strings.Contains(address, ":") {
		return nil, Errorf("it is not a file of the workspace (web_fetch with save can keep a picture there)")
	}
	if plain, err := url.PathUnescape(address); err == nil {
		address = plain // a link to a name with spaces contains %20
	}
	data, err := ws.ReadFile(path.Join(folder, address), 0, most+1)
	if workspace.IsNotFound(err) && folder != "." {
		data, err = ws.ReadFile(address, 0, most+1)
	}
	if err == nil && int64(len(data)) > most {
		err = Errorf("all pictures of a document can have %d bytes: leave some out, or make them smaller", maxPDFPictures)
	}
	return data, err
}
