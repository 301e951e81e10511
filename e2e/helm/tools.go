//go:build tools

// Package tools pins the helm that the tests of the chart build from its published module.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
