package prompt

import (
	"math"
	"slices"
	"strings"

	"journeyman/runner/model"
	"journeyman/store"
)

// Limits of the ratio. Text seldom has so few tokens that the ratio is below the lower one.
// A lower count means that the provider has not counted all, or has not read all.
const minCalibration, maxCalibration = 0.8, 3

// A calibration corrects estimates by the counts of the provider. Its zero value corrects
// nothing.
type calibration struct {
	ratio float64 // tokens that the provider counted for each estimated one; 0 while unknown

	counted, estimated int64 // tokens of the newest call
}

// Calibrate compares the estimate of a finished step with the provider's count, and corrects
// later estimates. It reports whether the count shows that the provider may have cut the prompt.
func (p *Prompt) Calibrate(st store.Step) (cut bool) {
	// A provider that ignores files counts few tokens without cutting the prompt.
	return p.calibrationOf(p.answeredBy(st.Model)).record(st.Estimated, st.Usage.InputTokens) && !p.sendsFiles()
}

// answeredBy returns the index in Models of the model that answered under that name, or
// -1. Providers add dates and versions to the names that they are asked for.
func (p *Prompt) answeredBy(name string) int {
	if len(p.Models) <= 1 {
		return 0
	}
	// The longest match wins: gpt-5-mini begins with gpt-5, too.
	found, longest := -1, 0
	for i, m := range p.Models {
		if len(m) > longest && (strings.HasPrefix(name, m) || strings.HasSuffix(name, "/"+m)) {
			found, longest = i, len(m)
		}
	}
	return found
}

// calibrationOf returns the calibration for the model of that index in Models.
func (p *Prompt) calibrationOf(i int) *calibration {
	c := p.calibrations[i]
	if c == nil {
		if p.calibrations == nil {
			p.calibrations = map[int]*calibration{}
		}
		c = &calibration{}
		p.calibrations[i] = c
	}
	return c
}

// record updates the ratio from the counted tokens of a call. It reports whether the count is
// far too low for the estimate.
func (c *calibration) record(estimated, counted int64) (tooLow bool) {
	if estimated <= 0 || counted <= 0 {
		return false
	}
	// A server that cuts prompts to its window counts the same for each longer prompt.
	grown := c.counted > 0 && estimated > c.estimated
	unchanged := grown && counted == c.counted
	tooLow = estimated >= leastCut && (counted < estimated/2 || unchanged && estimated-c.estimated >= leastGrowth)
	ratio := float64(counted) / float64(estimated)
	if !unchanged && ratio >= minCalibration {
		c.ratio = min(ratio, maxCalibration) // the newest call counts
	}
	c.counted, c.estimated = counted, estimated
	return tooLow
}

const (
	leastCut    = 1500 // estimated tokens of a prompt that a server may have cut: no window is smaller
	leastGrowth = 100  // estimated tokens: a prompt that has grown by less may have the same count
)

// sendsFiles reports whether the prompt holds files for the provider to read.
func (p *Prompt) sendsFiles() bool {
	isFile := func(f model.Part) bool { return f.Type == model.PartFile && f.Open != nil || len(f.Images) > 0 }
	return slices.ContainsFunc(p.conversation.messages, func(m model.Message) bool {
		return slices.ContainsFunc(m.Parts, isFile)
	})
}

// Calibrated corrects an estimate by the provider's counts of earlier calls of the next model.
func (p *Prompt) Calibrated(estimate int64) int64 { return p.CalibratedFor(p.Asking, estimate) }

// CalibratedFor corrects an estimate for the model of that index in Models.
func (p *Prompt) CalibratedFor(i int, estimate int64) int64 {
	return p.calibrationOf(i).correct(estimate)
}

func (c *calibration) correct(estimate int64) int64 {
	if c.ratio == 0 {
		return estimate
	}
	return int64(math.Round(float64(estimate) * c.ratio))
}

// Estimate returns about how many tokens the next request has, rather too many than too
// few, counted from its text.
func (p *Prompt) Estimate() int64 {
	req := p.Request() // first: it renders the messages whose tokens are added here
	return estimateOverhead(req) + p.conversation.tokens
}

// EstimateRequest returns about how many tokens a request has.
func EstimateRequest(req model.Request) int64 {
	return estimateOverhead(req) + estimateMessages(req.Messages)
}

// estimateOverhead returns about how many tokens a request has besides its messages.
func estimateOverhead(req model.Request) int64 {
	n := EstimateText(req.Preamble) + EstimateText(req.Instructions) + EstimateText(string(req.OutputSchema))
	for _, t := range req.Tools {
		n += EstimateText(t.Name) + EstimateText(t.Description) + EstimateText(string(t.InputSchema))
	}
	return n
}

func estimateMessages(messages []model.Message) int64 {
	n := int64(0)
	for _, m := range messages {
		n += 4 // what providers add to mark a message
		for _, p := range m.Parts {
			n += EstimateText(p.Text) + EstimateText(string(p.Input)) + EstimateText(p.ToolName) + EstimateText(p.Path)
			if p.Type == model.PartFile {
				n += estimateFile(p)
			}
			for _, image := range p.Images {
				n += EstimateText(image.Path) + estimateFile(image)
			}
		}
	}
	return n
}

// EstimateText returns about how many tokens a text has: one for four letters, and one
// for two bytes of anything else, such as figures, signs and other scripts.
func EstimateText(s string) int64 {
	letters := 0
	for i := range len(s) {
		if c := s[i] | 0x20; c >= 'a' && c <= 'z' || s[i] == ' ' {
			letters++
		}
	}
	return int64(letters+3)/4 + int64(len(s)-letters+1)/2
}

// estimateFile returns about how many tokens a file has whose bytes a provider may send
// along. Providers bound the size of pictures in pixels, and send text only up to a limit.
func estimateFile(p model.Part) int64 {
	const picture, name, longestText, longest = 2000, 100, 256 << 10, 64_000
	switch {
	case p.Open == nil: // the request only names the file
		return name
	case strings.HasPrefix(p.MediaType, "image/"):
		return picture
	case p.MediaType == "application/pdf":
		return min(p.Size/4, longest)
	case p.Size > longestText:
		return name
	}
	return p.Size/4 + name
}
