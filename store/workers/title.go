package workers

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
