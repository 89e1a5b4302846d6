package tool

import (
	"context"
	"encoding/json"
	"math"

	"journeyman/runner/tool/pdfwriter"
	"journeyman/runner/workspace"
	"journeyman/store/visible"
)

type writeFile struct{ docs Documents }

// Spec describes write_file.
func (writeFile) Spec() Spec {
	return Spec{
		Name: "write_file",
		Description: `Write a file in the workspace as a whole, and the folders it is in (.docx and .pdf from
Markdown, .xlsx from CSV). A PDF shows the pictures that the Markdown names. .xlsx also takes JSON rows [[cell]] or
{"Sheet": [[cell]]}, where
{"formula": "SUM(A2:A9)", "format": "#,##0.00"} is a cell too, as {"value": 0.25, "format": "0%"}.
{"Sheet": {"rows": [[cell]], "chart": {"kind": "column", "title": "Sales", "labels": "A2:A9", "values": "B2:C9"}}} adds a
chart: column, bar, line, pie, area or scatter. Formulas are computed and checked.`,
		InputSchema: objectSchema(`
    "path": {"type": "string", "description": "Such as reports/summary.md"},
    "content": {"type": "string"}`,
			"path", "content"),
		Repeatable: true,
	}
}

// Run writes a file.
func (w writeFile) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	path := a.path()
	content := a.text("content", true, math.MaxInt) // without a limit: the workspace limits the bytes
	if err := a.err(); err != nil {
		return nil, err
	}
	data, report, err := w.convert(ctx, host.Workspace(), path, content)
	if err != nil {
		return nil, err
	}
	if err := host.Workspace().WriteFile(path, data); err != nil {
		return nil, explain(err)
	}
	return result(struct {
		Path  string   `json:"path"`
		Size  int      `json:"size"`
		Pages int      `json:"pages,omitempty"` // of a PDF document
		Notes []string `json:"notes,omitempty"` // what the document lacks
	}{visible.Name(path), len(data), report.Pages, report.Notes})
}

// convert returns the bytes of the file for content. It uses only the extension of path: a text
// file with the extension .docx, .xlsx or .pdf could not be opened.
func (w writeFile) convert(ctx context.Context, ws *workspace.Workspace, path, content string) (
	data []byte, r pdfwriter.Report, err error) {
	switch workspace.MediaType(path, nil) {
	case docxType:
		data, err = w.docs.write(ctx, docxWriter, "docx document", content)
	case xlsxType:
		data, r.Notes, err = w.docs.workbook(ctx, content)
	case pdfType:
		return w.docs.writePDF(ctx, ws, path, content)
	default:
		if ext := binaryExtension(path); ext != "" {
			return nil, r, Errorf("write_file cannot make a %s file: %s", ext, instead(ext))
		}
		data = []byte(content)
	}
	return data, r, err
}
