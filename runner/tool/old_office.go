package tool

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
)

// Limits of conversions with LibreOffice.
const (
	officeTime    = 2 * time.Minute // for one document: the first start on a slow machine takes long
	officesAtOnce = 2               // few, because each takes much memory
)

// An officeConverter converts documents before 2007 with LibreOffice, in the sandbox of commands. It is safe for
// concurrent use.
type officeConverter struct {
	shell func() *sandbox.Shell // returns nil on a machine that cannot confine commands
	lane  *sandbox.Lane         // a unit for each conversion: an organization has one at a time
}

// WithOffice returns a Documents that also reads documents before 2007, if the machine has LibreOffice and can confine
// it. shell returns nil if the machine cannot.
func (d Documents) WithOffice(shell func() *sandbox.Shell) Documents {
	d.office = &officeConverter{shell: shell, lane: sandbox.NewLane(officesAtOnce)}
	return d
}

// modern returns a document in a form that this program reads. It returns most documents as they are, and also those
// that nothing can convert, for which the reader has an error.
func (d Documents) modern(ctx context.Context, kind documentKind, document []byte) (documentKind, []byte, error) {
	if d.office == nil || formOf(document[:min(len(document), headSize)]) != compoundForm {
		return kind, document, nil
	}
	old := documentKindOf(compoundType(document, kind))
	if old.target == "" || !d.office.possible() {
		return kind, document, nil
	}
	converted, err := d.office.convert(ctx, old, document)
	return documentKindOf(old.target), converted, err
}

// possible reports whether documents can be converted here.
func (o *officeConverter) possible() bool {
	shell := o.shell()
	return shell != nil && shell.Confined() && slices.Contains(shell.Programs(), "libreoffice")
}

// convert returns a document in the newer form of its kind. It returns an *Error if LibreOffice cannot read it.
func (o *officeConverter) convert(ctx context.Context, kind documentKind, document []byte) (out []byte, err error) {
	leave, err := o.lane.Acquire(ctx, sandbox.ClientOf(ctx), 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	dir, err := os.MkdirTemp("", "journeyman-office-")
	if err != nil {
		return nil, Errorf("the %s cannot be converted now: this machine has no place for temporary files", kind.name)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ws, err := workspace.Open(dir, workspace.Limits{FileSize: sandbox.MaxFilterInput, Files: 100})
	if err != nil {
		return nil, err
	}
	defer ws.Close()
	target := documentKindOf(kind.target).filter
	if err := ws.WriteFile("in."+kind.filter, document); err != nil {
		return nil, explain(err)
	}
	shell := o.shell()
	if shell == nil {
		return nil, Errorf("the %s cannot be converted now: this machine cannot confine LibreOffice", kind.name)
	}
	r, err := shell.Run(ctx, ws, sandbox.Command{Timeout: officeTime,
		Script: "soffice --headless --norestore --convert-to " + target + " in." + kind.filter})
	if err != nil {
		return nil, explain(err)
	}
	out, err = ws.ReadFile("in."+target, 0, sandbox.MaxFilterInput+1)
	switch {
	case r.Stopped != "":
		return nil, Errorf("the %s has no text that can be read: LibreOffice had to convert it, and %s", kind.name,
			whyStopped(r.Stopped, officeTime))
	case workspace.IsNotFound(err):
		return nil, Errorf("the %s has no text that can be read: LibreOffice cannot convert it, so it is damaged, or "+
			"a password protects it", kind.name)
	}
	return out, err
}
