package frame

import (
	"encoding/csv"
	"net/http"
	"strings"
)

// SendCSV sends a table as a file. It calls rows until there are no more, so that it never has the
// whole table in memory.
func (fr *Frame) SendCSV(w http.ResponseWriter, r *Request, name string, header []string,
	rows func() (rows [][]string, more bool, err error)) error {
	part, more, err := rows()
	if err != nil {
		return err // nothing is sent yet, so the error page can be
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	out := csv.NewWriter(w)
	out.UseCRLF = true // RFC 4180
	_ = out.Write(header)
	for {
		_ = out.WriteAll(part) // WriteAll also flushes
		if out.Error() != nil || !more {
			return nil //nolint:nilerr // the browser closed the connection
		}
		if part, more, err = rows(); err != nil {
			fr.Log.ErrorContext(r.Context(), "download", "file", name, "err", err)
			panic(http.ErrAbortHandler) // the browser must see that the table is not complete
		}
	}
}

// CSVCell returns a text that a spreadsheet shows as text. Without the quotation mark, a
// spreadsheet would evaluate some texts as formulas.
func CSVCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
