package worker

import (
	"context"
	"io"
	"net/http"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store"
)

// portableRoutes registers the forms that export and import workers.
func (d *Pages) portableRoutes() {
	d.On("GET", "/workers/:workerId/export", d.exportWorker)
	d.On("POST", "/import", d.importWorker)
}

// exportWorker sends a worker as a file.
func (d *Pages) exportWorker(w http.ResponseWriter, r *frame.Request) error {
	out, err := d.API.ExportWorker(r.Context(), r.Who.Caller, r.Params.ByName("workerId"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Content-Disposition", `attachment; filename="worker.yaml"`)
	_, _ = w.Write(out) // an error means that the browser closed the connection
	return nil
}

// importWorker creates a worker from a file, or from its text.
func (d *Pages) importWorker(w http.ResponseWriter, r *frame.Request) error {
	sent, f, err := d.ReadRunBox(w, r)
	if err != nil {
		return err
	}
	file := []byte(f.Get("file"))
	for _, upload := range sent.Files {
		if file, err = d.uploaded(r.Context(), upload); err != nil {
			return err
		}
	}
	key := frame.FormKey(r.Who.Caller, f.Get("token"), string(sent.Content))
	wrk, _, err := d.API.ImportWorker(r.Context(), r.Who.Caller, file, key)
	if err == nil {
		return frame.Redirect(w, r, frame.Done("/workers/"+wrk.ID, "worker-made"))
	}
	if !f.Refused(r, err) {
		return err
	}
	p := d.newWorkerPage(r)
	p.Import = f
	return d.Render(w, r, http.StatusUnprocessableEntity, "worker-new.html", r.T("New worker"), p)
}

// uploaded returns the bytes of a file in a form.
func (d *Pages) uploaded(ctx context.Context, f store.File) ([]byte, error) {
	blob, err := d.Store.OpenBlob(ctx, f.SHA256)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	// The extra byte makes ImportWorker refuse a file that is too large.
	return io.ReadAll(io.LimitReader(blob, frame.MaxForm+1))
}
