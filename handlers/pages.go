package handlers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"journeyman/store"
)

// What the pages share with the API: instructions that come from a form are taken
// in by the same code, with the same limits, as those of its clients.

// A PageForm is a multipart form that a page has sent.
type PageForm struct {
	Values url.Values // with the line ends of Unix
	upload *upload
}

// ReadPageForm reads a form with files. It fails with a store.Error where the form
// breaks the limits of uploads or breaks off.
func (a *API) ReadPageForm(w http.ResponseWriter, r *http.Request) (*PageForm, error) {
	u, err := a.readUpload(w, &request{Request: r, readIn: a.cfg.Timing.ReadIn})
	if err != nil {
		return nil, err
	}
	f := &PageForm{Values: url.Values{}, upload: u}
	for name, raw := range u.body.fields {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, fmt.Errorf("read form: %w", err)
		}
		f.Values.Set(name, strings.ReplaceAll(text, "\r\n", "\n")) // forms always send those
	}
	return f, nil
}

// SubmitPageForm accepts an instruction that came with a form and puts the form's
// files into the worker's workspace before. The same form with the same content,
// sent twice by an impatient finger, is one turn: token names the form as it was
// shown, and is not looked at where it is empty.
func (a *API) SubmitPageForm(r *http.Request, turn store.NewTurn, f *PageForm, token string) (store.Turn, error) {
	content, err := f.upload.canonical()
	if err != nil {
		return store.Turn{}, err
	}
	if token != "" {
		sum := sha256.Sum256(content)
		key := token + " " + hex.EncodeToString(sum[:])
		turn.Once = store.Once{KeyID: turn.Caller.UserID, Key: key, Hash: sum[:]}
	}
	accepted, err := a.commitWithFiles(&request{Request: r}, turn, f.upload.files, false)
	return accepted.Turn, err
}
