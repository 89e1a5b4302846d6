package handlers_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// monitoring is the folder of the dashboard and the alert rules.
const monitoring = "../.package/monitoring/"

// A panel holds the checked fields of a dashboard panel.
type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

// dashboard returns the panels of the dashboard.
func dashboard(t testing.TB) []panel {
	t.Helper()
	var d struct{ Panels []panel }
	text, err := os.ReadFile(monitoring + "dashboard.json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	is.New(t).NoErr(err)
	return d.Panels
}

// describedMetrics returns the types of the metrics in the table of the README.
func describedMetrics(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile(monitoring + "README.md")
	is.New(t).NoErr(err)
	types := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(text), -1) {
		types[m[1]] = m[2]
	}
	return types
}

// TestMonitoringNamesMetrics checks that every named metric is in the table of metrics.
func TestMonitoringNamesMetrics(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	known := describedMetrics(t)
	part := regexp.MustCompile(`_(bucket|sum|count)$`)
	metric := regexp.MustCompile(`\b(?:journeyman|process|go)_[a-z_]+`)
	for _, file := range []string{"dashboard.json", "alerts.yaml", "alerts_test.yaml"} {
		text, err := os.ReadFile(monitoring + file)
		is.NoErr(err)
		names := metric.FindAllString(string(text), -1)
		ordertest.Above(is, len(names), 20) // the pattern finds no names
		for _, name := range names {
			if kind := known[part.ReplaceAllString(name, "")]; known[name] == "" && kind != "histogram" && kind != "summary" {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
}

// TestDashboardIsComplete checks that each panel has a description, a unit, the filter for servers,
// and its own position.
func TestDashboardIsComplete(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	ids, taken, rows := map[int]bool{}, map[[2]int]string{}, []string{}
	for _, p := range dashboard(t) {
		is.True(!ids[p.ID]) // two panels have the same id
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Errorf("%s stands on %q, or beside the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if p.Title == "" || !strings.HasSuffix(p.Description, ".") || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d, %q, lacks its title, description, unit or query", p.ID, p.Title)
		}
		is.Equal(p.Datasource.UID, "${datasource}")
		for _, q := range p.Targets {
			if q.LegendFormat == "" || strings.Count(q.Expr, "{") != strings.Count(q.Expr, `instance=~"$instance"`) {
				t.Errorf("%s: %s has no legend, or shows other servers than the chosen ones", p.Title, q.Expr)
			}
		}
	}
	is.Equal(rows, []string{"Overview", "Work", "Models", "Streams and requests", "Mail and webhooks", "Disk and store", "Process"})
}

// TestComposeMountsWhatIsThere checks that the mounted files exist: Docker would create a folder
// for a missing one.
func TestComposeMountsWhatIsThere(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	text, err := os.ReadFile(monitoring + "compose.yaml")
	is.NoErr(err)
	mounted := regexp.MustCompile(`(?m)^ +- \./(\S+?):/`).FindAllStringSubmatch(string(text), -1)
	is.Equal(len(mounted), 5)
	for _, m := range mounted {
		_, err := os.Stat(filepath.Join("../.package", m[1]))
		is.NoErr(err)
	}
}
