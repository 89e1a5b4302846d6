package doctor

import (
	"context"
	"time"

	"journeyman/handlers"
	"journeyman/handlers/command"
	"journeyman/runner/sandbox"
)

// insideTime limits each part of the checks within a server: a person waits for them on a page.
const insideTime = 45 * time.Second

// New returns the checks of a server with these flags. The other fields are for main to set.
func New(c *command.ServeFlags, baseURL, smtpAddr, mailDomain string) *Examiner {
	return &Examiner{Addr: c.Addr, BaseURL: baseURL, Certificate: c.Certificate, SMTPAddr: smtpAddr, MailDomain: mailDomain}
}

// Inside returns a function that runs the checks that a running server can make. found describes
// how this machine confines commands. The checks end with the program.
func (d Examiner) Inside(p *command.Program, found func() sandbox.Confinement) func(context.Context) []handlers.Checks {
	return func(ctx context.Context) (list []handlers.Checks) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.Context, cancel)()
		x := &examination{Examiner: &d, Program: p, found: found, running: true}
		for _, s := range x.examine(ctx, insideTime, x.serverParts()) {
			part := handlers.Checks{Title: s.Title}
			for _, c := range s.Checks {
				part.List = append(part.List, handlers.Check(c))
			}
			list = append(list, part)
		}
		return list
	}
}
