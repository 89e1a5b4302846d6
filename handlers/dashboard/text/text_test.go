package text_test

import (
	"html/template"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/text"
)

func TestLanguages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	list := text.Languages()
	for _, l := range list {
		is.NoErr(l.Check())
	}
	is.Equal(list[0].Code, "en")
	is.Equal(len(list[0].Keys()), 0)
	is.Equal(list[1].Code, "de")
	is.Equal(list[1].T("Save"), "Speichern")
	is.Equal(list[1].Count(1226950), "1.226.950")
	is.Equal(list[1].Decimal("14.2"), "14,2")
	is.Equal(list[1].T("no catalogue has this key: %s", "x"), "no catalogue has this key: x")
}

func TestTexts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	en := text.English()
	is.Equal(en.T("100 % of it"), "100 % of it") // a text without values is no pattern
	is.Equal(en.T("%d of %s", 1234567, "all"), "1,234,567 of all")
	is.Equal(en.N(1, "%d task", "%d tasks"), "1 task")
	is.Equal(en.N(-1000, "%d task", "%d tasks"), "-1,000 tasks")
	is.Equal(en.N(2, "One waits", "Several wait"), "Several wait")
	is.Equal(en.N(2, "%d task of %s", "%d tasks of %s", "Ann"), "2 tasks of Ann")
	is.Equal(en.HTML(`<a href="%s">%s</a> and %d`, `/x"y`, "<b>", 1000),
		template.HTML(`<a href="/x&#34;y">&lt;b&gt;</a> and 1,000`))
	is.Equal(en.HTML(`%s`, template.HTML("<code>kept</code>")), template.HTML("<code>kept</code>"))
	is.Equal(en.HTML(`%v`, []string{"<i>"}), template.HTML("[&lt;i&gt;]"))
}

func TestChoose(t *testing.T) {
	t.Parallel()
	list := text.Languages()
	for name, tt := range map[string]struct{ wanted, accept, code string }{
		"nothing":             {"", "", "en"},
		"the account decides": {"en", "de", "en"},
		"an unknown choice":   {"xx", "de", "de"},
		"a region":            {"", "de-AT,en;q=0.8", "de"},
		"weights":             {"", "fr, en;q=0.7, de;q=0.9", "de"},
		"the first of equals": {"", "en,de", "en"},
		"refused":             {"", "de;q=0", "en"},
		"a faulty weight":     {"", "de;q=high, de;x=1", "en"},
		"letters of any case": {"", "DE", "de"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(text.Choose(list, tt.wanted, tt.accept).Code, tt.code)
		})
	}
}
