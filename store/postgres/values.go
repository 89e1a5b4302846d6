package postgres

import (
	"database/sql/driver"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// encodeAll returns the encoded parameters of a statement and their formats. types are the types
// that the server has inferred.
func encodeAll(args []any, types []uint32) (values [][]byte, formats []int16, err error) {
	if len(args) != len(types) {
		return nil, nil, fmt.Errorf("the statement has %d parameters, not %d", len(types), len(args))
	}
	values, formats = make([][]byte, len(args)), make([]int16, len(args))
	for i, arg := range args {
		if values[i], formats[i], err = encode(arg, types[i]); err != nil {
			return nil, nil, fmt.Errorf("parameter %d: %w", i+1, err)
		}
	}
	return values, formats, nil
}

// encode returns an encoded argument. It converts the argument as database/sql does. Numbers are
// sent as text: the server parses 1 as a number, a boolean or text, depending on the statement.
// Bytes are sent in the binary format, which is the same for text and bytea.
func encode(arg any, oid uint32) (value []byte, format int16, err error) {
	switch arg.(type) {
	case nil, int64, string, []byte:
	default:
		if arg, err = driver.DefaultParameterConverter.ConvertValue(arg); err != nil {
			return nil, 0, err
		}
	}
	switch v := arg.(type) {
	case nil:
		return nil, textFormat, nil
	case int64:
		return strconv.AppendInt(nil, v, 10), textFormat, nil
	case bool:
		if v {
			return []byte("1"), textFormat, nil
		}
		return []byte("0"), textFormat, nil
	case float64:
		return encodeFloat(v), textFormat, nil
	case string:
		if oid == oidBytea {
			return []byte(v), binaryFormat, nil
		}
		return []byte(Clean(v)), textFormat, nil
	case []byte:
		if v == nil {
			return nil, textFormat, nil
		}
		if isText(oid) {
			v = []byte(Clean(string(v)))
		}
		return v, binaryFormat, nil
	}
	return nil, 0, fmt.Errorf("the type %T is not known", arg) // such as time.Time
}

// encodeFloat returns a whole number without an exponent, because the column may be an integer
// column. NaN becomes NULL, as in SQLite.
func encodeFloat(x float64) []byte {
	switch {
	case math.IsNaN(x):
		return nil
	case math.IsInf(x, 1):
		return []byte("Infinity")
	case math.IsInf(x, -1):
		return []byte("-Infinity")
	case x == math.Trunc(x) && math.Abs(x) < 1<<63:
		return strconv.AppendFloat(nil, x, 'f', -1, 64)
	}
	return strconv.AppendFloat(nil, x, 'g', -1, 64)
}

// Clean returns a text that the server accepts. It refuses two kinds of text that SQLite stores:
// invalid UTF-8 and NUL. Both become U+FFFD.
func Clean(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		// NUL is not removed, because a text with NUL must not equal the same text without it.
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// The server's type numbers (OIDs) that this package uses.
const (
	oidBool    = 16
	oidBytea   = 17
	oidInt8    = 20
	oidInt2    = 21
	oidInt4    = 23
	oidText    = 25
	oidOID     = 26
	oidFloat4  = 700
	oidFloat8  = 701
	oidUnknown = 705
	oidVarchar = 1043
	oidNumeric = 1700
)
