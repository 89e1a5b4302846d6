package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
	"time"
)

// A Report holds the figures of one run. Its JSON can be compared with that of a later run.
type Report struct {
	Date    time.Time `json:"date"`
	Version string    `json:"version"` // of the program that measured
	System  string    `json:"system"`
	CPUs    int       `json:"cpus"`
	Figures []Figure  `json:"figures"`
}

// A Figure is one measured value.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Less reports that a smaller value is better.
	Less  bool   `json:"less,omitempty"`
	Times *Times `json:"times,omitempty"` // of the single requests
	// Machine is the value that this machine reaches without the server; 0 if there is no such
	// value.
	Machine float64 `json:"machine,omitempty"`
}

// Times are the milliseconds within which half, 99 % and 99.9 % of requests were answered.
type Times struct {
	P50  float64 `json:"p50_ms"`
	P99  float64 `json:"p99_ms"`
	P999 float64 `json:"p999_ms"`
}

func newReport(version string) *Report {
	return &Report{Date: time.Now().UTC().Truncate(time.Second), Version: version, CPUs: runtime.NumCPU(),
		System: runtime.GOOS + "/" + runtime.GOARCH + " " + runtime.Version()}
}

// add appends a figure and shows it as progress.
func (s *session) add(f Figure) {
	s.report.Figures = append(s.report.Figures, f)
	s.progress("%s: %s %s", f.Name, number(f.Value), f.Unit)
}

// find returns the figure of a name, nil if there is none.
func (r *Report) find(name string) *Figure {
	for i := range r.Figures {
		if r.Figures[i].Name == name {
			return &r.Figures[i]
		}
	}
	return nil
}

// Load reads the JSON of an earlier report.
func Load(path string) (*Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is no report: %w", path, err)
	}
	if len(r.Figures) == 0 {
		return nil, fmt.Errorf("%s is no report: it has no figures", path)
	}
	return r, nil
}

// save writes the report as JSON, for later comparisons.
func (r *Report) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// Table writes the report for people. Beside each figure it shows the value of the machine
// itself. With an earlier report, it also shows the earlier value and the improvement: 2.00x is
// twice as good, whether more or less is better.
func (r *Report) Table(w io.Writer, earlier *Report) error {
	fmt.Fprintf(w, "Journeyman %s, %s, %d CPUs, %s\n\n", r.Version, r.System, r.CPUs, r.Date.Format(time.RFC3339))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "measure\tvalue\tunit\tp50 ms\tp99 ms\tp99.9 ms\tmachine\t"
	if earlier != nil {
		head += "before\tbetter by\t"
	}
	fmt.Fprintln(t, head)
	for _, f := range r.Figures {
		fmt.Fprintf(t, "%s\t%s\t%s\t", f.Name, number(f.Value), f.Unit)
		if f.Times == nil {
			fmt.Fprint(t, "\t\t\t")
		} else {
			fmt.Fprintf(t, "%s\t%s\t%s\t", number(f.Times.P50), number(f.Times.P99), number(f.Times.P999))
		}
		if f.Machine > 0 {
			fmt.Fprint(t, number(f.Machine))
		}
		fmt.Fprint(t, "\t")
		if earlier != nil {
			fmt.Fprint(t, f.since(earlier.find(f.Name)))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// since returns the cells that compare the figure with an earlier one.
func (f Figure) since(before *Figure) string {
	if before == nil || before.Value <= 0 || f.Value <= 0 {
		return "\t\t"
	}
	ratio := f.Value / before.Value
	if f.Less {
		ratio = 1 / ratio
	}
	return fmt.Sprintf("%s\t%.2fx\t", number(before.Value), ratio)
}

// number writes a value with three digits or more.
func number(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
