package store

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	"journeyman/store/db"
	"journeyman/store/gate"
)

// This file limits what each organization stores, so that one of them cannot fill the disk of all. The
// contents of files, mails, the texts of tasks and workers, and workspaces count. Sums in memory answer
// whether there is room, so an admission costs no query. A measurement corrects them now and then: see
// MeasureOrganizations. Nodes that share a database count what they admit themselves, and learn of the
// rest by the next measurement.

// orgDisks has what each organization stores.
type orgDisks struct {
	limit gate.DiskLimit // a share is one of the space that the data folder may take

	mu     sync.Mutex // guards the fields below
	most   int64      // the limit in bytes; 0 for no limit, and until the first measurement of a share
	use    map[string]*orgUse
	owners map[string]string // organizations of workers, which never change

	refused  bool      // something was refused since the last measurement began
	measured time.Time // end of the last measurement; zero before the first
	took     time.Duration
}

// An orgUse is what an organization stores, in bytes.
type orgUse struct {
	measured int64 // by the last measurement
	added    int64 // since that began; negative if more was removed
	underWay int64 // taken, and neither stored nor given up yet: no measurement finds these bytes for sure

	// Contents that no row names yet: their request has not ended, or was refused. They stay on the disk until
	// the sweep, so a measurement must not forget them.
	unnamed map[string]unnamedBlob // by SHA-256
}

// An unnamedBlob is a content that no row named when it was stored.
type unnamedBlob struct {
	size   int64
	stored time.Time
}

func (d *orgDisks) open(limit gate.DiskLimit) {
	d.limit, d.use, d.owners = limit, map[string]*orgUse{}, map[string]string{}
	if limit.Share == 0 {
		d.most = limit.Bytes // known before the first measurement
	}
}

// of returns the use of an organization. d.mu is held.
func (d *orgDisks) of(organization string) *orgUse {
	u := d.use[organization]
	if u == nil {
		u = &orgUse{unnamed: map[string]unnamedBlob{}}
		d.use[organization] = u
	}
	return u
}

// left returns how many bytes an organization may still store. d.mu is held.
func (d *orgDisks) left(organization string) int64 {
	if d.most == 0 {
		return math.MaxInt64
	}
	u := d.of(organization)
	return d.most - u.measured - u.added - u.underWay
}

// fits returns an error if there is no room for n bytes. d.mu is held.
func (d *orgDisks) fits(organization string, n int64) error {
	if d.left(organization) >= n {
		return nil
	}
	d.refused = true
	return &db.Error{Kind: db.Full,
		Message: fmt.Sprintf("the organization stores as much as it may, %.1f MiB: delete files "+
			"in workspaces, keep tasks and mail for a shorter time, or let the operator raise --org-disk",
			float64(d.most)/(1<<20))}
}

// An OrgDisk is the part of the disk that an organization may use.
type OrgDisk struct {
	store        *Store
	organization string
}

// DiskOf returns the part of the disk that an organization may use.
func (s *Store) DiskOf(organizationID string) OrgDisk { return OrgDisk{s, organizationID} }

// chargeDisk counts bytes that a write stores for an organization. It refuses them if the organization may not store
// them.
func (s *Store) chargeDisk(tx db.Tx, organizationID string, size int64) error {
	disk := s.DiskOf(organizationID)
	if err := disk.Fits(max(size, 1)); err != nil {
		return err
	}
	tx.OnCommit(func() { disk.Add(size) })
	return nil
}

// DiskOfWorker returns the part of the disk that the organization of a worker may use.
func (s *Store) DiskOfWorker(ctx context.Context, workerID string) (OrgDisk, error) {
	d := &s.orgDisks
	d.mu.Lock()
	owner, ok := d.owners[workerID]
	d.mu.Unlock()
	if ok {
		return s.DiskOf(owner), nil
	}
	owner, err := db.One(ctx, s.db, db.ScanString, `SELECT organization_id FROM workers WHERE id = ?`, workerID)
	if err != nil {
		return OrgDisk{}, db.NoRecord(err, "worker")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owners[workerID] = owner
	return s.DiskOf(owner), nil
}

// change calls fn with the use of the organization, while nothing else changes it.
func (o OrgDisk) change(fn func(u *orgUse)) {
	d := &o.store.orgDisks
	d.mu.Lock()
	defer d.mu.Unlock()
	fn(d.of(o.organization))
}

// Left returns how many bytes the organization may still store. It is negative if the organization stores
// more than it may: the operator can lower the limit.
func (o OrgDisk) Left() int64 {
	d := &o.store.orgDisks
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left(o.organization)
}

// Use returns how many bytes the organization stores and may store, 0 for no limit.
func (o OrgDisk) Use() (used, most int64) {
	o.change(func(u *orgUse) {
		used, most = max(u.measured+u.added+u.underWay, 0), o.store.orgDisks.most
	})
	return used, most
}

// Room returns nil, or the error of type Full with which the organization's new work is refused.
func (o OrgDisk) Room() error { return o.Fits(1) }

// RoomForStrangers is Room for work of people who are not members. The last quarter is for members.
func (o OrgDisk) RoomForStrangers() error {
	_, most := o.Use()
	return o.Fits(max(most/4, 1))
}

// Fits returns an error of type Full if there is no room for n bytes. It adds nothing.
func (o OrgDisk) Fits(n int64) error {
	d := &o.store.orgDisks
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fits(o.organization, n)
}

// Take adds n bytes to what the organization stores. It returns an error of type Full, and adds nothing, if
// there is no room for them.
func (o OrgDisk) Take(n int64) error {
	if err := o.reserve(n); err != nil {
		return err
	}
	o.settle(n, true)
	return nil
}

// Add adds n bytes without a check. A negative n removes bytes.
func (o OrgDisk) Add(n int64) { o.change(func(u *orgUse) { u.added += n }) }

// reserve is Take for bytes that are not stored yet. Its caller calls settle.
func (o OrgDisk) reserve(n int64) error {
	d := &o.store.orgDisks
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fits(o.organization, max(n, 1)); err != nil {
		return err
	}
	d.of(o.organization).underWay += n
	return nil
}

// settle ends a reservation: its bytes are stored, or given up.
func (o OrgDisk) settle(n int64, stored bool) {
	o.change(func(u *orgUse) {
		if u.underWay -= n; stored {
			u.added += n
		}
	})
}

// PutBlob is Store.PutBlob for a content that counts for the organization. It returns an error of type Full
// if there is no room for it. Other contents that arrive at the same time take room, too, even if they are refused
// in the end.
func (o OrgDisk) PutBlob(ctx context.Context, r io.Reader, limit int64) (Blob, error) {
	// With a bucket, the disk has a copy only while somebody uses it. Without a limit, nothing is measured, so
	// nothing would ever remove the unnamed contents from memory.
	if o.store.bucket != nil || o.store.orgDisks.limit.IsZero() {
		return o.store.PutBlob(ctx, r, limit)
	}
	taking := &takingReader{disk: o, r: r}
	b, err := o.store.PutBlob(ctx, taking, limit)
	if taking.refused != nil {
		err = taking.refused
	}
	if err == nil {
		o.change(func(u *orgUse) { u.unnamed[b.SHA256] = unnamedBlob{b.Size, o.store.now()} })
	}
	o.settle(taking.taken, err == nil)
	return b, err
}

// A takingReader takes room for the bytes that it reads.
type takingReader struct {
	disk    OrgDisk
	r       io.Reader
	taken   int64
	refused error
}

// Read returns an error of type Full if there is no room for more bytes.
func (t *takingReader) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	if n == 0 {
		return n, err // at the end of a content that has just filled the room
	}
	if t.refused = t.disk.reserve(int64(n)); t.refused != nil {
		return 0, t.refused
	}
	t.taken += int64(n)
	return n, err
}
