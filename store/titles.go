package store

import "hash/fnv"

var (
	titleAdjectives = []string{"Amber", "Brisk", "Calm", "Clever", "Coral", "Crisp", "Dapper", "Eager", "Fair", "Gentle",
		"Golden", "Hardy", "Humble", "Jolly", "Keen", "Lively", "Lucid", "Mellow", "Nimble", "Patient",
		"Plucky", "Quiet", "Ready", "Sage", "Silver", "Steady", "Sturdy", "Swift", "Tidy", "Witty"}
	titleNouns = []string{"Badger", "Beacon", "Bison", "Comet", "Condor", "Crane", "Falcon", "Ferry", "Finch", "Harbor",
		"Heron", "Ibis", "Jackdaw", "Kestrel", "Lantern", "Lynx", "Maple", "Marten", "Meadow", "Osprey",
		"Otter", "Pelican", "Quill", "Raven", "Robin", "Sparrow", "Tern", "Walnut", "Willow", "Wren"}
)

// generatedTitle is a two-word name for a worker without a title, always the same
// for the same id.
func generatedTitle(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash never fails
	n := h.Sum32()
	return titleAdjectives[n%30] + " " + titleNouns[n/30%30]
}
