{{/* The rights of the operator, equal to deploy/rbac.yaml and kafka_rebalance.kube.rights (checked by a test). */}}

{{/* In every watched namespace. */}}
{{- define "kro.rules.watched" -}}
# patch: our finalizer
- apiGroups: [kafkarebalance.dev]
  resources: [kafkarebalances, kafkareassignmentthrottles]
  verbs: [get, list, watch, patch]
# After spec.ttlSecondsAfterFinished.
- apiGroups: [kafkarebalance.dev]
  resources: [kafkarebalances]
  verbs: [delete]
- apiGroups: [kafkarebalance.dev]
  resources: [kafkaconnections]
  verbs: [list, watch]
- apiGroups: [kafkarebalance.dev]
  resources: [kafkaconnections/status, kafkarebalances/status, kafkareassignmentthrottles/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# Secrets that a resource refers to; their names are not known in advance.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
# ConfigMaps with the assignment of the strategy Assignment.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
# To see whether the namespace is being deleted, and its labels, for spec.allowedNamespaces of a KafkaConnection.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- end }}

{{/* If all namespaces are watched. */}}
{{- define "kro.rules.everywhere" -}}
# get: to see a deletion that includes our resources. list, watch: kopf watches whether our CRDs exist.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- end }}

{{/* In the operator's own namespace: plans, origins, runs, throttle ledgers, and the leader Lease. */}}
{{- define "kro.rules.own" -}}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, create, update, delete]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update]
{{- end }}

{{/* There, if single namespaces are watched: events about a resource whose namespace accepts no new objects. */}}
{{- define "kro.rules.ownAlone" -}}
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}

{{/* Cluster-wide, if reports are served: whose token it is, and whether that user may read the resource. */}}
{{- define "kro.rules.reports" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
