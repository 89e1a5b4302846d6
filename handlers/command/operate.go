package command

import (
	"context"
	"fmt"
)

// Reloading is the command that makes a running server read its configuration again.
type Reloading struct{}

// Run asks the server to reload its configuration, and prints the changes.
func (Reloading) Run(p *Program) error {
	reply, err := p.askServer(Call{Reload: true})
	if err == nil {
		fmt.Fprintln(p.Stdout, reply.Result)
	}
	return err
}

// askServer performs one operation through the running server.
func (p *Program) askServer(c Call) (Reply, error) {
	client := p.controlClient()
	ctx, cancel := context.WithTimeout(p.Context, lockPatience)
	defer cancel()
	if !client.answers(ctx) {
		return Reply{}, fmt.Errorf("no server answers on the data folder %s", p.Data)
	}
	return client.Do(p.Context, c)
}
