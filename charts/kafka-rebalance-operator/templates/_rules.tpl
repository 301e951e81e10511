{{/* The operator's rights: those of deploy/rbac.yaml and of kafka_rebalance.kube.rights, which a test holds equal. */}}

{{/* In every namespace that is watched. */}}
{{- define "kro.rules.watched" -}}
# patch: our finalizer
- apiGroups: [kafkarebalance.dev]
  resources: [kafkarebalances, kafkareassignmentthrottles]
  verbs: [get, list, watch, patch]
- apiGroups: [kafkarebalance.dev]
  resources: [kafkarebalances/status, kafkareassignmentthrottles/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# Only those that a resource names; their names are the users' choice.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
# Likewise: the lists of the strategy Assignment.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
# Whether one is being deleted, and our resources with it.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- end }}

{{/* Where all namespaces are watched. */}}
{{- define "kro.rules.everywhere" -}}
# get: a deletion that takes our resources with it; by the others kopf notices that our kinds come and go.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- end }}

{{/* In the operator's own namespace: plans, origins, runs and throttle ledgers; the Lease of the one that leads. */}}
{{- define "kro.rules.own" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, create, update, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end }}

{{/* There, where single namespaces are watched: about what was left of a resource whose namespace takes nothing new. */}}
{{- define "kro.rules.ownAlone" -}}
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}
