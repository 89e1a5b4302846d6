package command

import (
	"errors"
	"fmt"
	"os"
	"time"

	"journeyman/handlers/command/bench"
)

// Bench measures a server.
type Bench struct {
	URL     string        `name:"url" help:"Address of a running server, instead of one that the command starts in a temporary folder. The tasks that it creates stay there." placeholder:"URL"`
	Key     string        `help:"API key for --url." placeholder:"KEY"`
	KeyFile string        `name:"key-file" help:"File with the API key." placeholder:"FILE"`
	For     time.Duration `default:"3s" help:"Time of each load."`
	Tasks   []int         `default:"1000,100000,1000000" help:"Sizes of the tables whose reads are measured."`
	Readers []int         `default:"1,1000,10000" help:"Numbers of subscribers to one worker."`
	Only    []string      `help:"Measures to carry out: machine, memory, tasks, followups, first-event, fanout, webhooks, mail, schedules, disk, tables." placeholder:"NAME"`
	JSON    string        `name:"json" help:"File for the figures, for the flag --compare of a later run." placeholder:"FILE"`
	Compare string        `help:"File with the figures of an earlier run." placeholder:"FILE"`
}

// Run prints the table. Progress goes to stderr. After an error the table holds the figures
// that were measured before.
func (c *Bench) Run(p *Program) (err error) {
	var earlier *bench.Report
	if c.Compare != "" {
		if earlier, err = bench.Load(c.Compare); err != nil {
			return fmt.Errorf("--compare: %w", err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	report, err := bench.Run(p.Context, bench.Options{Program: program, Version: p.Version, URL: c.URL, Key: c.Key,
		For: c.For, Tasks: c.Tasks, Readers: c.Readers, Only: c.Only, Progress: p.Stderr})
	if report == nil || len(report.Figures) == 0 {
		return err
	}
	err = errors.Join(err, report.Table(p.Stdout, earlier))
	if c.JSON != "" {
		err = errors.Join(err, c.save(report))
	}
	return err
}

// save writes the figures as JSON.
func (c *Bench) save(report *bench.Report) (err error) {
	f, err := os.Create(c.JSON)
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return report.JSON(f)
}
