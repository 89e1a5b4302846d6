package workspace

import (
	"net/http"
	"path"
	"strings"
)

// mediaTypes are the media types by extension. Go's mime package is not used, because its table
// differs between machines.
var mediaTypes = map[string]string{
	".7z": "application/x-7z-compressed", ".aac": "audio/aac", ".avi": "video/x-msvideo",
	".avif": "image/avif", ".bmp": "image/bmp", ".bz2": "application/x-bzip2",
	".c": "text/x-c", ".cpp": "text/x-c++", ".css": "text/css",
	".csv": "text/csv", ".doc": "application/msword",
	".docm": "application/vnd.ms-word.document.macroenabled.12",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".dotx": "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
	".dotm": "application/vnd.ms-word.template.macroenabled.12",
	".eml":  "message/rfc822", ".epub": "application/epub+zip", ".flac": "audio/flac",
	".fodp": "application/vnd.oasis.opendocument.presentation-flat-xml",
	".fods": "application/vnd.oasis.opendocument.spreadsheet-flat-xml",
	".fodt": "application/vnd.oasis.opendocument.text-flat-xml",
	".gif":  "image/gif", ".go": "text/x-go", ".gz": "application/gzip",
	".h": "text/x-c", ".heic": "image/heic", ".htm": "text/html",
	".html": "text/html", ".ico": "image/x-icon", ".ics": "text/calendar",
	".ini": "text/plain", ".ipynb": "application/x-ipynb+json", ".java": "text/x-java",
	".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".js": "text/javascript",
	".json": "application/json", ".jsonl": "application/jsonl", ".log": "text/plain",
	".m4a": "audio/mp4", ".m4v": "video/mp4", ".markdown": "text/markdown",
	".md": "text/markdown", ".mjs": "text/javascript", ".mkv": "video/x-matroska",
	".mov": "video/quicktime", ".mp3": "audio/mpeg", ".mp4": "video/mp4",
	".mpeg": "video/mpeg", ".msg": "application/vnd.ms-outlook", ".odp": "application/vnd.oasis.opendocument.presentation",
	".ods": "application/vnd.oasis.opendocument.spreadsheet",
	".odt": "application/vnd.oasis.opendocument.text", ".ogg": "audio/ogg",
	".otp": "application/vnd.oasis.opendocument.presentation-template",
	".otf": "font/otf", ".ots": "application/vnd.oasis.opendocument.spreadsheet-template", ".parquet": "application/vnd.apache.parquet",
	".pdf": "application/pdf", ".png": "image/png", ".ppt": "application/vnd.ms-powerpoint",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".pptm": "application/vnd.ms-powerpoint.presentation.macroenabled.12",
	".pps":  "application/vnd.ms-powerpoint",
	".ppsm": "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
	".potm": "application/vnd.ms-powerpoint.template.macroenabled.12",
	".ppsx": "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
	".potx": "application/vnd.openxmlformats-officedocument.presentationml.template",
	".odg":  "application/vnd.oasis.opendocument.graphics", ".ott": "application/vnd.oasis.opendocument.text-template",
	".rar": "application/vnd.rar", ".xz": "application/x-xz", ".tgz": "application/gzip",
	".jar": "application/java-archive", ".psd": "image/vnd.adobe.photoshop", ".jp2": "image/jp2",
	".heif": "image/heif",
	".py":   "text/x-python", ".rb": "text/x-ruby", ".rs": "text/x-rust",
	".rtf": "application/rtf", ".sh": "text/x-shellscript", ".sql": "application/sql",
	".sqlite": "application/vnd.sqlite3", ".svg": "image/svg+xml", ".tar": "application/x-tar",
	".tif": "image/tiff", ".tiff": "image/tiff", ".toml": "application/toml",
	".ts": "text/x-typescript", ".tsv": "text/tab-separated-values", ".tsx": "text/x-typescript",
	".ttf": "font/ttf", ".txt": "text/plain", ".vcf": "text/vcard",
	".wasm": "application/wasm", ".wav": "audio/wav", ".weba": "audio/webm",
	".webm": "video/webm", ".webp": "image/webp", ".woff": "font/woff",
	".woff2": "font/woff2", ".xhtml": "application/xhtml+xml", ".xls": "application/vnd.ms-excel",
	".xlsb": "application/vnd.ms-excel.sheet.binary.macroenabled.12",
	".xlsm": "application/vnd.ms-excel.sheet.macroenabled.12",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".xltm": "application/vnd.ms-excel.template.macroenabled.12",
	".xltx": "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
	".tbz2": "application/x-bzip2", ".tzst": "application/zstd",
	".vcard": "text/vcard",
	".xml":   "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
	".zip": "application/zip", ".zst": "application/zstd",
}

// MediaType returns the media type, without parameters, of a file with this path that begins
// with head. 512 bytes of head are enough. MediaType uses the extension if it is known, else
// the contents.
func MediaType(name string, head []byte) string {
	if t, ok := mediaTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	t, _, _ := strings.Cut(http.DetectContentType(head), ";")
	return t
}
