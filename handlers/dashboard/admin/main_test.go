package admin_test

import (
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
)

func TestMain(m *testing.M) { dashboardtest.Main(m) }
