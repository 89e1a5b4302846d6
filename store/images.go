package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"journeyman/store/db"
)

// callImages selects the images of a call as a JSON array. It does not sort, because that
// would need a temporary table for each call.
const callImages = `(SELECT json_group_array(json_object('path', coalesce(i.path, ''), 'mediaType', i.media_type, 'size', i.size,
		'sha256', i.sha256, 'seq', i.seq))
	FROM call_images i WHERE i.turn_num = c.turn_num AND i.step_seq = c.step_seq AND i.call_seq = c.seq)`

// An imageRow is an image and its position among the images of its call.
type imageRow struct {
	Image
	Seq int64 `json:"seq"`
}

// readImages decodes callImages, in the order of the images. It returns nil for a call
// without images.
func readImages(raw string) (list []Image, err error) {
	if raw == "[]" {
		return nil, nil // true for nearly all calls, which then decode no JSON
	}
	var rows []imageRow
	if err := json.Unmarshal([]byte(raw), &rows); err != nil {
		return nil, fmt.Errorf("decode images: %w", err)
	}
	slices.SortFunc(rows, func(a, b imageRow) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range rows {
		list = append(list, r.Image)
	}
	return list, nil
}

func insertImages(tx db.Tx, turnNum int64, call Call) error {
	for i, m := range call.Images {
		err := tx.ExecLater(`INSERT INTO call_images (turn_num, step_seq, call_seq, seq, path, media_type, size, sha256)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, turnNum, call.Step, call.Seq, i, db.Nullable(m.Path), m.MediaType, m.Size,
			m.SHA256)
		if err != nil {
			return err
		}
	}
	return nil
}
