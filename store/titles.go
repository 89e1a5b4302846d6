package store

import (
	"hash/fnv"
	"strings"
)

// The words of generated titles, 30 of each kind.
const (
	titleAdjectives = `Amber Brisk Calm Clever Coral Crisp Dapper Eager Fair Gentle
		Golden Hardy Humble Jolly Keen Lively Lucid Mellow Nimble Patient
		Plucky Quiet Ready Sage Silver Steady Sturdy Swift Tidy Witty`
	titleNouns = `Badger Beacon Bison Comet Condor Crane Falcon Ferry Finch Harbor
		Heron Ibis Jackdaw Kestrel Lantern Lynx Maple Marten Meadow Osprey
		Otter Pelican Quill Raven Robin Sparrow Tern Walnut Willow Wren`
)

// generatedTitle returns a title of two words for a worker without one. The same id
// always gets the same title.
func generatedTitle(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash never fails
	n := h.Sum32()
	return strings.Fields(titleAdjectives)[n%30] + " " + strings.Fields(titleNouns)[n/30%30]
}

// TitleOf returns a title for an input: its first line with words in it, cut at 80
// characters.
func TitleOf(input string) string {
	title := "Untitled task"
	for line := range strings.Lines(input) {
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			continue // the fence of a code block names a language, not the subject
		}
		if line = strings.Join(strings.Fields(strings.Trim(line, "#*`~> \t\r\n")), " "); line != "" {
			title = line
			break
		}
	}
	if r := []rune(title); len(r) > 80 {
		title = strings.TrimSpace(string(r[:79])) + "…"
	}
	return title
}
