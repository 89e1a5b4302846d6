package prompt

import (
	"math"
	"slices"
	"strings"

	"journeyman/runner/model"
	"journeyman/store"
)

// Limits of calibration.ratio. Real text seldom has a ratio below minCalibration. A lower ratio
// means that the provider has not counted or not read the whole prompt.
const minCalibration, maxCalibration = 0.8, 3

// A calibration corrects estimates by the token counts of the provider. Its zero value changes
// no estimate.
type calibration struct {
	ratio float64 // counted tokens per estimated token; 0 if unknown

	counted, estimated int64 // tokens of the newest call
}

// Calibrate compares the estimate of a finished step with the provider's count, and corrects
// later estimates. It reports whether the count shows that the provider may have cut the prompt.
func (p *Prompt) Calibrate(st store.Step) (cut bool) {
	// A provider that ignores files counts few tokens although it does not cut the prompt.
	return p.calibrationOf(p.answeredBy(st.Model)).record(st.Estimated, st.Usage.InputTokens) && !p.sendsFiles()
}

// answeredBy returns the index in Models of the model with that name in a response, or -1.
// Providers append dates and versions to the requested name.
func (p *Prompt) answeredBy(name string) int {
	if len(p.Models) <= 1 {
		return 0
	}
	// The longest match counts: gpt-5-mini begins with gpt-5, too.
	found, longest := -1, 0
	for i, m := range p.Models {
		if len(m) > longest && (strings.HasPrefix(name, m) || strings.HasSuffix(name, "/"+m)) {
			found, longest = i, len(m)
		}
	}
	return found
}

// calibrationOf returns the calibration of the model with index i in Models.
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
// much too low for the estimate.
func (c *calibration) record(estimated, counted int64) (tooLow bool) {
	if estimated <= 0 || counted <= 0 {
		return false
	}
	// A server that cuts prompts to its window returns the same count for every longer prompt.
	grown := c.counted > 0 && estimated > c.estimated
	unchanged := grown && counted == c.counted
	tooLow = estimated >= leastCut && (counted < estimated/2 || unchanged && estimated-c.estimated >= leastGrowth)
	ratio := float64(counted) / float64(estimated)
	if !unchanged && ratio >= minCalibration {
		c.ratio = min(ratio, maxCalibration) // the newest call alone determines the ratio
	}
	c.counted, c.estimated = counted, estimated
	return tooLow
}

const (
	leastCut    = 1500 // estimated tokens of a prompt that a server may have cut; no window is smaller
	leastGrowth = 100  // growth, in estimated tokens, from which on the count must change
)

// sendsFiles reports whether the prompt contains files that the provider reads.
func (p *Prompt) sendsFiles() bool {
	isFile := func(f model.Part) bool { return f.Type == model.PartFile && f.Open != nil || len(f.Images) > 0 }
	return slices.ContainsFunc(p.conversation.messages, func(m model.Message) bool {
		return slices.ContainsFunc(m.Parts, isFile)
	})
}

// Calibrated corrects an estimate by the provider's earlier token counts for the next model.
func (p *Prompt) Calibrated(estimate int64) int64 { return p.CalibratedFor(p.Asking, estimate) }

// CalibratedFor corrects an estimate for the model with index i in Models.
func (p *Prompt) CalibratedFor(i int, estimate int64) int64 {
	return p.calibrationOf(i).correct(estimate)
}

func (c *calibration) correct(estimate int64) int64 {
	if c.ratio == 0 {
		return estimate
	}
	return int64(math.Round(float64(estimate) * c.ratio))
}

// Estimate returns the estimated tokens of the next request, from the length of its text. It is
// too high rather than too low.
func (p *Prompt) Estimate() int64 {
	req := p.Request() // first, because it renders the messages whose tokens are added here
	return estimateOverhead(req) + p.conversation.tokens
}

// EstimateRequest returns the estimated tokens of a request.
func EstimateRequest(req model.Request) int64 {
	return estimateOverhead(req) + estimateMessages(req.Messages, nil)
}

// estimateOverhead returns the estimated tokens of a request without its messages.
func estimateOverhead(req model.Request) int64 {
	n := EstimateText(req.Preamble) + EstimateText(req.Instructions) + EstimateText(req.OutputSchema)
	for _, t := range req.Tools {
		n += EstimateText(t.Name) + EstimateText(t.Description) + EstimateText(t.InputSchema)
	}
	return n
}

// estimateMessages returns the estimated tokens of messages for models that take these files.
func estimateMessages(messages []model.Message, takes []model.Takes) int64 {
	n := int64(0)
	for _, m := range messages {
		n += 4 // tokens that providers add per message
		for _, p := range m.Parts {
			if p.Type == model.PartFile {
				n += estimateFile(p, takes)
				continue
			}
			n += EstimateText(p.Text) + EstimateText(p.Input) + EstimateText(p.ToolName)
			for _, image := range p.Images {
				n += estimateFile(image, takes)
			}
		}
	}
	return n
}

// EstimateText returns the estimated tokens of a text: one per four letters, and one per two
// bytes of other characters, such as digits, punctuation and other scripts.
func EstimateText[T ~string | ~[]byte](s T) int64 {
	others := 0
	for i := range len(s) {
		// Each if becomes an instruction without a branch. Letters and other bytes alternate irregularly,
		// so the processor would often mispredict a branch.
		other := 0
		if s[i]|0x20-'a' >= 26 {
			other = 1
		}
		if s[i] == ' ' {
			other = 0
		}
		others += other
	}
	letters := len(s) - others
	return int64(letters+3)/4 + int64(others+1)/2
}

// estimateFile returns the estimated tokens of a file. Several models may be called: the one for which the file
// costs most counts.
func estimateFile(p model.Part, takes []model.Takes) (tokens int64) {
	if len(takes) == 0 {
		takes = []model.Takes{{Pictures: true, PDFs: true}}
	}
	for _, t := range takes {
		tokens = max(tokens, t.Tokens(p, EstimateText[string]))
	}
	return tokens
}
