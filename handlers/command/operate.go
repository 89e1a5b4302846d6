package command

import (
	"context"
	"fmt"
)

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
