{{- define "kro.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* At most 40 characters: a CronJob's name has 52, and the longest of ours adds 11. */}}
{{- define "kro.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "kro.selector" -}}
app.kubernetes.io/name: {{ include "kro.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Of every object; {"top": $, "component": "operator"} */}}
{{- define "kro.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .top.Chart.Name .top.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "kro.selector" .top }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .top.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .top.Release.Service }}
app.kubernetes.io/part-of: kafka-rebalance
{{- with .top.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kro.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "kro.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name has to be given where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* {"top": $, "image": .Values.image} */}}
{{- define "kro.image" -}}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (default .top.Chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}

{{/* What the operator watches, for every command that asks. */}}
{{- define "kro.scope" -}}
{{- range .Values.watchNamespaces }}
- --namespace={{ . }}
{{- else }}
- --all-namespaces
{{- end }}
- --own-namespace={{ .Release.Namespace }}
{{- end }}

{{/* What all Pods have in common. */}}
{{- define "kro.pod" -}}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all containers have in common; {"top": $, "image": .Values.image} */}}
{{- define "kro.container" -}}
image: {{ include "kro.image" . }}
imagePullPolicy: {{ .image.pullPolicy }}
securityContext:
  {{- toYaml .top.Values.securityContext | nindent 2 }}
{{- end }}

{{/* The root filesystem cannot be written to, and the account has no home. */}}
{{- define "kro.home" -}}
- name: HOME
  value: /tmp
{{- end }}

{{- define "kro.lakeClaim" -}}
{{- default (printf "%s-lake" (include "kro.fullname" .)) .Values.pipeline.lake.existingClaim }}
{{- end }}
