package engine

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// An IntScanner is a destination that can be set to an integer without the cost of an interface value.
type IntScanner interface {
	sql.Scanner
	ScanInt(n int64)
}

// Assign sets the variable to which dest points. The value is nil, an int64, a float64, a string or
// a []byte. Assign converts it as database/sql does. The variable may keep the bytes of a []byte, so
// the caller must not change them.
func Assign(dest, value any) error {
	switch to := dest.(type) {
	case sql.Scanner:
		return to.Scan(value)
	case *any:
		*to = value
		return nil
	case *bool:
		v, err := driver.Bool.ConvertValue(value)
		if err == nil {
			*to = v.(bool)
		}
		return err
	case *[]byte:
		if value == nil {
			*to = nil
			return nil
		}
		if b, ok := value.([]byte); ok {
			*to = b
			return nil
		}
		*to = []byte(asString(value))
		return nil
	case *string:
		if value != nil {
			*to = asString(value)
			return nil
		}
	}
	to := reflect.ValueOf(dest)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return errors.New("the destination is not a pointer, or nil")
	}
	return set(to.Elem(), value)
}

// set sets a variable of a type that Assign has no case for.
func set(to reflect.Value, value any) error {
	if s, ok := value.(string); ok && to.Kind() == reflect.String {
		to.SetString(s) // the most frequent case; the general conversion is slower
		return nil
	}
	from := reflect.ValueOf(value)
	if value != nil && from.Type().AssignableTo(to.Type()) {
		to.Set(from)
		return nil
	}
	if to.Kind() == reflect.Pointer {
		if value == nil {
			to.SetZero()
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return Assign(to.Interface(), value)
	}
	if value == nil {
		return fmt.Errorf("converting NULL to %s is unsupported", to.Type())
	}
	if to.Kind() == from.Kind() && from.Type().ConvertibleTo(to.Type()) {
		to.Set(from.Convert(to.Type()))
		return nil
	}
	return parse(to, value)
}

// parse sets a number to the value, which is converted by way of its text. It also sets a string to a
// []byte.
func parse(to reflect.Value, value any) error {
	var err error
	switch text := asString(value); to.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		var n int64
		if n, err = strconv.ParseInt(text, 10, to.Type().Bits()); err == nil {
			to.SetInt(n)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		var n uint64
		if n, err = strconv.ParseUint(text, 10, to.Type().Bits()); err == nil {
			to.SetUint(n)
		}
	case reflect.Float32, reflect.Float64:
		var n float64
		if n, err = strconv.ParseFloat(text, to.Type().Bits()); err == nil {
			to.SetFloat(n)
		}
	case reflect.String:
		if b, ok := value.([]byte); ok {
			to.SetString(string(b))
			return nil
		}
		fallthrough
	default:
		return fmt.Errorf("converting %T to %s is unsupported", value, to.Type())
	}
	if err != nil {
		return fmt.Errorf("converting %T %q to %s: %w", value, asString(value), to.Type(), errors.Unwrap(err))
	}
	return nil
}

// asString returns a value that is not NULL as text.
func asString(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}
