package model

import (
	"regexp"
	"slices"
)

// fileQuirks are what a server has refused of files. A refusal of one file says nothing about the model.
type fileQuirks struct {
	noImages  bool // the model takes no pictures
	noPDFs    bool // the model takes no PDF files
	badImages bool // a picture of this request was refused
	badPDFs   bool // a PDF file of this request was refused
}

// takes returns which files a model takes.
func (q fileQuirks) takes(name string, pictureTokens func(width, height int) int64) Takes {
	return Takes{Model: name, Pictures: !q.noImages, PDFs: !q.noPDFs, badPictures: q.badImages, badPDFs: q.badPDFs,
		pictureTokens: pictureTokens}
}

// fileFeatures returns the files of a request as features. of returns the fileQuirks within quirks.
func fileFeatures[Q any](of func(*Q) *fileQuirks, r *apiError, req *Request) (list []feature[Q]) {
	text := r.text()
	if sends(req, fileImage) && aboutPictures.MatchString(text) {
		lacking := lacksPictures.MatchString(text) && !aboutOneFile(text)
		list = append(list, feature[Q]{refused: lacking, omit: func(q *Q) { of(q).noImages = true }, lasting: true},
			feature[Q]{refused: !lacking, omit: func(q *Q) { of(q).badImages = true }})
	}
	if sends(req, filePDF) && aboutPDFs.MatchString(text) {
		lacking := lacksPDFs.MatchString(text) && !aboutOneFile(text)
		list = append(list, feature[Q]{refused: lacking, omit: func(q *Q) { of(q).noPDFs = true }, lasting: true},
			feature[Q]{refused: !lacking, omit: func(q *Q) { of(q).badPDFs = true }})
	}
	return list
}

// sends reports whether the content of a file of a kind may be in a request.
func sends(req *Request, kind fileKind) bool {
	return slices.ContainsFunc(filesIn(req), func(p Part) bool {
		is, _ := kindOf(plainType(p.MediaType))
		return p.Open != nil && is == kind
	})
}

// The texts of refusals are in lower case.
var (
	aboutPictures = regexp.MustCompile(`image|picture|mmproj|multi-?modal|\bvision\b|` + contentType)
	aboutPDFs     = regexp.MustCompile(`pdf|document|attachment|(?:\b|_)file|` + contentType)

	lacksPictures = lacks(`(?:images?\b|image_url|input_image|pictures?\b|vision\b|multi-?modal)`)
	lacksPDFs     = lacks(`(?:pdfs?\b|documents?\b|(?:input_)?files?\b|file_data|attachments?\b)`)
)

// contentType matches the type of a part of a message, which servers name in place of its kind.
const contentType = `content[ ._-]type`

// lacks returns a pattern for refusals that say that the model or its server does not know a kind of content. Sources:
// Ollama (ollama/ollama#17301: "does not support image input"; "missing data required for image input"), OpenAI
// ("image_url is only supported by certain models": vllm-project/vllm#11629), Gemini ("Image input modality is not
// enabled"), Bedrock ("doesn't support the image field": earendil-works/pi#8960), OpenRouter ("No endpoints found that
// support image input": github/app#2163), DeepSeek ("unknown variant `image_url`": DayuanJiang/next-ai-draw-io#55),
// vLLM ("is not a multimodal model", "At most 0 image(s) may be provided", "Unknown part type"), llama.cpp ("you may
// need to provide the mmproj"), Zhipu (the content type may only be ['text']), GitHub ("does not have the 'vision'
// capability").
func lacks(kind string) *regexp.Regexp {
	return regexp.MustCompile(
		`(?:n't|\b(?:not|cannot|no [a-z]+(?: found)? that)) (?:currently |yet )?(?:support|accept|take|have)\w*\b` +
			`[^.]{0,40}\b` + kind +
			`|\b` + kind + `[^.]{0,40}\b(?:not|un)[ -]?(?:currently |yet )?(?:supported|enabled|available|implemented)` +
			`|\b` + kind + `[^.]{0,20}\bonly supported by` +
			`|\b(?:unsupported|unknown|invalid) (?:variant|part type|content[ ._-]?type|content part|input type|modality|` +
			`value)\b:? ?.?` + kind +
			`|\bnot (?:an? )?(?:multi-?modal|vision)|\bno ` + kind + ` (?:support|capabilit)|\bat most 0 ` + kind +
			`|missing data required for ` + kind + `|mmproj` +
			`|\b(?:only|just) (?:supports?|accepts?|takes?)? ?(?:plain )?text\b|\btext-only\b|\[['"]text['"]\]`)
}

// oneFile matches words about a single file: its format, its size, its content. Sources: OpenAI ("You uploaded an
// unsupported image": vercel/ai#1544; "Your input image may contain content that is not allowed"), Azure ("Invalid
// image data"), Anthropic ("Could not process image": anthropics/claude-code#2854; "Image does not match the provided
// media type"), Dify ("Unsupported image type application/octet-stream"), vLLM ("At most 1 image(s) may be provided").
var oneFile = regexp.MustCompile(`format|mime|media.?type|image type|file type|extension|\blarge|\bsmall|` +
	`too (?:big|many|long)|\bsize|dimension|resolution|pixel|corrupt|damaged|truncated|\bdecod|` +
	`base64|\bvalid|download|fetch|password|encrypt|protected|\bpages?\b|safety|policy|\bcontent that\b|` +
	`unsupported (?:image|picture|file|document|pdf)\b|image/[a-z]|` +
	`at most [1-9]|\b(?:this|your|uploaded) (?:input )?(?:image|picture|file|document|pdf)\b`)

// aboutOneFile reports whether a refusal is about a single file.
func aboutOneFile(text string) bool { return oneFile.MatchString(text) }
