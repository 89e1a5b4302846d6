package handlers

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"journeyman/store/histogram"
)

// samples writes samples in the text format of Prometheus.
type samples struct{ io.Writer }

// value writes a sample. labels alternates names and values.
func (s samples) value(name string, v float64, labels ...string) {
	fmt.Fprintf(s, "%s%s %s\n", name, labelled(labels), strconv.FormatFloat(v, 'g', -1, 64))
}

func (s samples) count(name string, n int64, labels ...string) {
	fmt.Fprintf(s, "%s%s %d\n", name, labelled(labels), n)
}

// flag writes 1 or 0.
func (s samples) flag(name string, on bool, labels ...string) {
	v := 0.0
	if on {
		v = 1
	}
	s.value(name, v, labels...)
}

func (s samples) histogram(name string, h histogram.Reading, labels ...string) {
	for i, n := range h.Counts {
		bound := "+Inf"
		if i < len(h.Bounds) {
			bound = strconv.FormatFloat(h.Bounds[i], 'g', -1, 64)
		}
		s.count(name+"_bucket", n, append(slices.Clip(labels), "le", bound)...)
	}
	s.value(name+"_sum", h.Sum, labels...)
	s.count(name+"_count", h.Counts[len(h.Counts)-1], labels...)
}

func labelled(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	var b strings.Builder
	for i := 0; i+1 < len(labels); i += 2 {
		fmt.Fprintf(&b, ",%s=%q", labels[i], labels[i+1])
	}
	return "{" + b.String()[1:] + "}"
}

// A family is a metric with all its labels.
type family struct{ name, kind, help string }

// descriptions holds the family of each metric. familyOf maps the name of a sample to that of its family:
// the samples of a histogram have three names.
type descriptions struct {
	list     []family
	familyOf map[string]string
}

func newDescriptions(list []family) descriptions {
	d := descriptions{list, map[string]string{}}
	for _, f := range list {
		d.familyOf[f.name] = f.name
		if f.kind == "histogram" || f.kind == "summary" {
			d.familyOf[f.name+"_bucket"], d.familyOf[f.name+"_sum"], d.familyOf[f.name+"_count"] = f.name, f.name, f.name
		}
	}
	return d
}

// write writes samples in the order of the list, each with its type and its help text. It leaves
// out metrics without a description: most metrics of Go's runtime are not needed here.
func (d descriptions) write(out io.Writer, text string) error {
	lines := map[string][]string{}
	for line := range strings.Lines(text) {
		if i := strings.IndexAny(line, "{ "); i > 0 {
			name := d.familyOf[line[:i]]
			lines[name] = append(lines[name], line)
		}
	}
	var b bytes.Buffer
	for _, f := range d.list {
		if len(lines[f.name]) == 0 {
			continue
		}
		if f.kind != "histogram" { // its buckets must keep their order
			slices.Sort(lines[f.name]) // sorted, so that people can compare two scrapes
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, line := range lines[f.name] {
			b.WriteString(line)
		}
	}
	_, err := out.Write(b.Bytes())
	return err
}
