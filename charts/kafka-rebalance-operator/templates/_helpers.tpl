{{- define "kro.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimAll "-." }}
{{- end }}

{{/* Without dots, which a release name may have and a Service name may not. At most 40 characters: the limit of a CronJob is 52, and our longest suffix has 11. */}}
{{- define "kro.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | replace "." "-" | trunc 40 | trimAll "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | replace "." "-" | trunc 40 | trimAll "-" }}
{{- end }}
{{- end }}

{{- define "kro.selector" -}}
app.kubernetes.io/name: {{ include "kro.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* The labels of every object; {"top": $, "component": "operator", "more": .Values.podLabels}. On conflicts, those that
selectors use are the chart's, the others the user's. */}}
{{- define "kro.labels" -}}
{{- $labels := dict "app.kubernetes.io/version" .top.Chart.AppVersion "app.kubernetes.io/part-of" "kafka-rebalance" }}
{{- $labels = mergeOverwrite $labels (default dict .top.Values.commonLabels) (default dict .more) }}
{{- $chart := printf "%s-%s" .top.Chart.Name .top.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- $ours := dict "helm.sh/chart" $chart "app.kubernetes.io/managed-by" .top.Release.Service }}
{{- $ours = set $ours "app.kubernetes.io/component" .component }}
{{- toYaml (mergeOverwrite $labels $ours (include "kro.selector" .top | fromYaml)) }}
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

{{/* The options for the namespaces to watch. */}}
{{- define "kro.scope" -}}
{{- range .Values.watchNamespaces }}
- --namespace={{ . }}
{{- else }}
- --all-namespaces
{{- end }}
- --own-namespace={{ .Release.Namespace }}
{{- end }}

{{/* The fields that all Pods share. */}}
{{- define "kro.pod" -}}
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
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

{{/* The fields that all containers share; {"top": $, "image": .Values.image} */}}
{{- define "kro.container" -}}
image: {{ include "kro.image" . }}
imagePullPolicy: {{ .image.pullPolicy }}
securityContext:
  {{- toYaml .top.Values.securityContext | nindent 2 }}
{{- end }}

{{/* The root filesystem is read-only, and the account has no home directory. */}}
{{- define "kro.home" -}}
- name: HOME
  value: /tmp
{{- end }}

{{/* The seconds of a duration like 1h30m. */}}
{{- define "kro.seconds" -}}
{{- $seconds := 0 }}
{{- range $unit, $length := dict "h" 3600 "m" 60 "s" 1 }}
{{- $seconds = add $seconds (mul $length (regexFind (printf "[0-9]+%s" $unit) $ | trimSuffix $unit | int)) }}
{{- end }}
{{- $seconds }}
{{- end }}

{{- define "kro.lakeClaim" -}}
{{- default (printf "%s-lake" (include "kro.fullname" .)) .Values.pipeline.lake.existingClaim }}
{{- end }}

{{/* The account with which the load model Job starts executors. */}}
{{- define "kro.sparkAccount" -}}
{{- with .Values.pipeline.spark.serviceAccount }}
{{- if .create }}
{{- default (printf "%s-spark" (include "kro.fullname" $)) .name }}
{{- else }}
{{- required "pipeline.spark.serviceAccount.name has to be given where its create is false" .name }}
{{- end }}
{{- end }}
{{- end }}
