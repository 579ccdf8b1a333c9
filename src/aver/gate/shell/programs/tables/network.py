"""Programs that talk to other machines."""

from __future__ import annotations

TABLE = r"""
curl :: -O!write (-f -s -S -L -k -i -I -v -g -n -N -J -R -q -Z -0 -1 -2 -3 -4 -6 -a -j -l -p -B -M -#) -o=write \
  -D=write -c=write -b=cookie -w=writeout -m= -y= -Y= -z= -t= -H=header -A=header -e=header -r= -C= -x=send \
  -U=header -u=header -E=secretfile -P= -Q= -h? -d=body -F=form -T=upload -X=method -K=config --url=url --data=body \
  --data-ascii=body --data-binary=body --data-raw=raw --data-urlencode=body --json=body --form=form \
  --form-string=raw --upload-file=upload --request=method --config=config --output=write --output-dir=write \
  --dump-header=write --cookie-jar=write --cookie=cookie --write-out=writeout --max-time= --connect-timeout= \
  --retry= --retry-delay= --retry-max-time= --header=header --user-agent=header --referer=header --range= \
  --continue-at= --proxy=send --preproxy=send --proxy-user= --user=header --oauth2-bearer=header --cert=secretfile \
  --key=secretfile --cacert=read --capath=read --crlfile=read --ciphers= --tls-max= --interface= \
  --resolve=!egress,?unknown-target --connect-to=!egress,?unknown-target --dns-servers=send --doh-url=send \
  --unix-socket=socket --abstract-unix-socket=socket --limit-rate= --max-redirs= --max-filesize= --noproxy= --proto= \
  --proto-default= --netrc-file=secretfile --trace=write --trace-ascii=write --stderr=write --etag-save=write \
  --etag-compare=read --hsts=write --alt-svc=write --libcurl=write --parallel-max= --variable=raw --expand-data=raw \
  --expand-url=url --url-query=raw --mail-from= --mail-rcpt=raw --get -G (--fail --fail-with-body --silent \
  --show-error --location --location-trusted --insecure --include --head --verbose --globoff --netrc --no-buffer) \
  --remote-name!write --remote-name-all!write (--remote-header-name --compressed --http1.1 --http2 --http3 --ipv4 \
  --ipv6 --progress-bar --no-progress-meter --retry-all-errors --retry-connrefused --create-dirs --parallel \
  --tlsv1.2 --tlsv1.3 --ssl-reqd --tcp-nodelay --path-as-is --raw --anyauth --basic --digest --next \
  --create-file-mode= --version) *url
wget :: (-q -v -d -c -N -r -k -p -m -x -S -E -H -L -4 -6 -F -K -b -h -V) -o=write -a=write -O=write -P=write -i=read \
  -t= -T= -w= -Q= -l= -A= -R= -D= -I= -X= -U= -B= -e=config --output-file=write --append-output=write \
  --output-document=write --directory-prefix=write --input-file=read --tries= --timeout= --wait= --header=header \
  --user-agent=header --referer=header --user= --password= --http-user= --http-password= --post-data=raw \
  --post-file=upload --body-data=raw --body-file=upload --method=method --execute=config --config=config \
  --use-askpass=program --ca-certificate=read --certificate=secretfile --private-key=secretfile --load-cookies=read \
  --save-cookies=write --limit-rate= --level= --accept= --reject= --domains= --warc-file=write --base= \
  --max-redirect= --connect-timeout= --read-timeout= --dns-timeout= --progress? --show-progress (--quiet \
  --no-verbose --verbose --continue --timestamping --recursive --no-parent --mirror --page-requisites \
  --convert-links --spider --server-response --no-check-certificate --content-disposition --no-clobber --inet4-only \
  --inet6-only --background --debug --no-cookies --no-proxy --retry-connrefused --version) *url @write
# Its operands are an address and fields to send; the line is unclear in any case.
http, https, xh, xhs, curlie :: lax -o=write --output=write -a= --auth= -A= --session= --verify= --cert=secretfile \
  --proxy=send --timeout= --download!write +network +egress +?unknown-option *skip
# Unclear in any case.
aria2c, axel, youtube-dl, yt-dlp, gallery-dl, lftp, ncftp, httrack :: lax -o=write -d=write --exec=run +network \
  +write +?unknown-program *host
# Unclear in any case: they open connections and tunnels.
ncat, nmap, masscan, socat, telnet, ftp, tftp, rlogin, rsh, websocat, wscat, cryptcat, chisel, ngrok, cloudflared, \
  localtunnel, lt, bore, frpc, iodine, dnscat, gost, stunnel, autossh, sshuttle, mosh, tailscale, zerotier-cli :: \
  lax +network +egress +?unknown-program *host
# Their operands are recipients; a rule asks about everything that is sent.
mail, mailx, mutt, neomutt, sendmail, msmtp, ssmtp, swaks, s-nail :: lax +network +egress *skip
# Unclear in any case: they copy to other machines.
rclone, gsutil, s3cmd, s5cmd, mc, minio, b2, azcopy, restic, borg, duplicity, unison, syncthing, croc, \
  magic-wormhole, wormhole, transfer, ffsend, rdiff-backup :: lax +network +egress +?unknown-program *skip
# Unclear in any case: their operands and input are statements that run elsewhere.
psql, mysql, mariadb, mongo, mongosh, redis-cli, cqlsh, sqlcmd, clickhouse-client, influx, etcdctl, snowsql, bq, \
  mongodump, pg_dump, pg_dumpall, pg_restore, mysqldump, createdb, dropdb, nats, kcat, kafkacat, rabbitmqadmin, \
  ldapsearch, ldapmodify, smbclient, snmpwalk, mosquitto_pub, mosquitto_sub, grpcurl, evans, websocketd :: lax \
  +network +execute +?code *skip
gh pr {view list diff checks status}, gh issue {view list status}, gh run {list view watch}, gh release {list view}, \
  gh repo {view list}, gh workflow {list view}, gh label list, gh {search status}, gh search {code commits issues \
  prs repos}, gh gist {list view}, gh cache list, gh ruleset {list view check}, gh project {list view item-list \
  field-list}, gh org list, gh pr list :: -R=hostless --repo=hostless -w!network --web!network --json= \
  -q=filter --jq=filter -L= \
  --limit= -s= --state= -t= --template= -a= --assignee= -A=service --author=service -B= --base= -H=service \
  --head=service -l=service --label=service -S=service --search=service -m= --milestone= --mention= --app= --draft \
  -d -c --comments --patch --name-only --color= --required --watch --fail-fast -i= --interval= --log --log-failed \
  --exit-status -j= --job= --attempt= -v --verbose --user= -u= --branch= -b= -e= --event= --commit= --created= \
  --status= --workflow= --all --exclude-drafts --exclude-pre-releases -O= --order= --sort= --owner= --language= \
  --archived --no-archived --fork --source --visibility= --topic= --ref= -y --yaml -r --raw -f= --filename= --files \
  --public --secret --format= --closed --org= -o= --conflict-status --compact --repo-owner= --match= --updated= \
  --closed --merged --merged-at= --review= --reviewed-by= --review-requested= --checks= --involves= --team= \
  --extension= --size= --stars= --license= --parents --default -p +service-read *service
gh auth status :: -a --active --json= -h=hostless --hostname=hostless -t!secret --show-token!secret +service-read
# It shows or changes what signs in; a rule asks.
gh auth :: lax +secret +network
# Unclear in any case where it names a method, fields or another host; else it reads.
gh api :: -[i] -X=ghmethod --method=ghmethod -f=!network,egress -F=!network,egress --field=!network,egress \
  --raw-field=!network,egress --input=upload -H=header --header=header -q=filter --jq=filter -t= --template= --cache= \
  --hostname=send --paginate --slurp --include --silent --verbose -p= --preview= +service-read *service
# Their operands are numbers and names; a rule asks about what they fetch.
gh repo {clone sync}, gh release download, gh run download, gh gist clone, gh pr checkout, gh issue develop :: lax \
  -D=write --dir=write -O=write --output=write +network +write *skip
# It opens a page in the browser.
gh browse :: lax +network *skip
# What they send is text for people; a rule asks.
gh pr {create comment edit review ready close reopen lock update-branch}, gh issue {create comment edit close reopen \
  lock pin transfer}, gh release edit, gh gist edit, gh label {create edit}, gh workflow {run enable disable}, gh \
  run {rerun cancel}, gh repo {create fork edit rename}, gh variable set, gh project, gh cache delete :: lax -F=read \
  --body-file=read --notes-file=read +network +egress *skip
# A rule asks in any case, so its options need no list.
gh gist create, gh release {create upload} :: lax -F=read --notes-file=read -d= -n= -t= -R= --repo= --desc= --title= \
  --notes= --filename= +network +egress *read
# They change what is published; a rule asks.
gh pr {merge revert}, gh repo {delete archive}, gh release delete, gh issue delete, gh gist delete, gh label delete, \
  gh run delete :: lax +network +egress +git-history *skip
# A rule asks in any case, so its options need no list.
gh {secret ssh-key gpg-key codespace variable} :: lax +secret +network +egress *skip
# Unclear in any case, so its options need no list.
gh {extension alias config completion attestation copilot} :: lax +execute +network +?unknown-program
gh :: -R=hostless --repo=hostless
# Unclear in any case, so its options need no list.
glab :: lax +network +egress +execute +?unknown-program
# Unclear in any case, so its options need no list.
aws, gcloud, az, doctl, heroku, vercel, netlify, flyctl, fly, railway, firebase, wrangler, supabase, oci, ibmcloud, \
  linode-cli, hcloud, scw, eksctl, copilot, sam, cdk, pulumi, serverless, sls, amplify, kops, databricks, oc, \
  argocd, flux, istioctl, consul, nomad, packer, vagrant, ansible, ansible-playbook, salt, puppet, chef, fab :: lax \
  +network +egress +execute +?unknown-program
# A rule asks in any case, so its options need no list.
aws s3 {cp mv sync} :: lax --exclude= --include= --profile= --region= --acl= --content-type= --storage-class= \
  --endpoint-url=send +network +egress *cloud
# Their operands are addresses in a cloud storage; a rule asks.
aws s3 {ls presign mb website}, gcloud storage ls :: lax +network *skip
# A rule asks in any case, so its options need no list.
aws s3 {rm rb} :: lax +network +delete *skip
kubectl logs :: -[pf] -n= --namespace= -l= --selector= -c= --container= --tail= --since= --since-time= --context= \
  --cluster= --user= --follow? --previous? --timestamps? --prefix? --all-containers? --all-pods? --limit-bytes= \
  --max-log-requests= --ignore-errors? --pod-running-timeout= --kubeconfig=program -s=send --server=send \
  --token=!secret --as=!privilege +service-read *resource
kubectl {get describe top explain version api-resources api-versions cluster-info events}, kubectl rollout {status \
  history}, kubectl auth can-i, kubectl wait, kubectl config {current-context get-contexts get-clusters} :: -[ARwpf] \
  -n= --namespace= -o=goformat --output=goformat -l= --selector= -L= -c= -f=kubefile -k=kubefile --filename=kubefile \
  --kustomize=kubefile --container= --tail= --since= --since-time= --context= --cluster= --user= --request-timeout= \
  --all-namespaces? --all-containers? --all-pods? --follow? --previous? --timestamps? --prefix? --watch? \
  --watch-only? --show-labels? --show-kind? --show-managed-fields? --sort-by= --field-selector= --label-columns= \
  --no-headers? --ignore-not-found? --chunk-size= --limit-bytes= --max-log-requests= --recursive? --template= \
  --allow-missing-template-keys? --server-print? --subresource= --output-watch-events? --show-events? --client? \
  --short? --containers? --use-protocol-buffers? --api-group= --api-version= --namespaced? --verbs= --for= \
  --timeout= --all? --revision= --list? --quiet? -q -v= --v= --types= --cached? --categories= --show-capacity? \
  --raw=!network,?unknown-target --kubeconfig=program -s=send --server=send --token=!secret --as=!privilege \
  --as-group=!privilege --certificate-authority=read --client-certificate=read --client-key=secretfile \
  --insecure-skip-tls-verify?!network --cache-dir=write --profile-output=write +service-read *resource
# It runs what the settings name as the program for differences, and reads files and addresses.
kubectl diff :: lax -f=read --filename=read -k=read +network +execute *skip
# They change what is rolled out; a rule asks.
kubectl {rollout auth} :: lax +network +egress +system *skip
# A rule asks in any case, so its options need no list.
kubectl cluster-info dump :: lax --output-directory=write +network +secret
kubectl :: -n= --namespace= --context= --cluster= --user= --kubeconfig=program -s=send --server=send --token=!secret \
  --as=!privilege --as-group=!privilege --request-timeout= -v= --v=
# Their operands are kinds and names; a rule asks about every change of a cluster.
kubectl {apply create delete edit patch replace scale set label annotate drain cordon uncordon taint expose \
  autoscale} :: lax -f=read --filename=read -k=read -n= --namespace= -l= -o= -p= --patch-file=read +network +egress \
  +system *skip
# Unclear in any case: what they run, runs in the cluster.
kubectl {exec run debug attach cp port-forward proxy plugin config certificate} :: lax +network +egress +execute \
  +?remote *skip
# Unclear in any case, so its options need no list.
helm :: lax +network +execute +?unknown-program
terraform fmt, tofu fmt :: -check:read -diff -list= -write= -recursive -no-color *edit .write onedash
terraform {version get-plugins}, tofu version :: -json onedash
# They start plugins of the workspace, which are programs.
terraform {validate graph providers}, tofu {validate graph} :: -json -no-color -no-tests -test-directory= \
  -draw-cycles -type= -plan=read -module-depth= onedash +execute *skip .read
# They show values of the state, secret ones among them.
terraform {output show}, tofu {output show} :: lax +secret *skip .read onedash
# They fetch and install plugins; a rule asks.
terraform {init get}, tofu init :: lax +network +install +write onedash *skip
# A rule asks in any case, so its options need no list.
terraform plan, tofu plan :: lax -out=write -var-file=read onedash +network +execute *skip
# They change what is deployed; a rule asks.
terraform {apply destroy import state taint console workspace force-unlock}, tofu {apply destroy state} :: lax \
  +network +egress +system onedash *skip
# Their operands are names of containers, images, volumes and networks of the engine that is set up already.
docker {ps images logs inspect version info stats top port diff history events}, docker image {ls inspect history}, \
  docker container {ls ps list inspect logs top stats port diff}, docker volume {ls inspect}, docker network {ls \
  inspect}, docker compose {ps logs ls images top version port events stats}, docker context {ls show}, docker \
  system {df info}, docker buildx {ls version du} :: -[aqsltfdv] -f= -n= --filter= --format= --tail= --since= \
  --until= --all --quiet --size --latest --last= --no-trunc --digests --tree --details --follow --timestamps --type= \
  --no-stream --human --no-color --no-log-prefix --services --status= --orphans --index= --protocol= --json \
  --verbose +service-read *skip
# It asks a registry about an image.
docker manifest :: lax +network +egress *host
# It shows the settings with the values of the environment in them.
docker compose {config convert} :: lax -o=write --output=write +secret *skip
# Their operands are images; a rule asks about what they fetch.
docker {pull search login logout}, docker image pull, docker compose pull :: lax +network +install *skip
# A rule asks in any case, so its options need no list.
docker push, docker image push, docker compose push :: lax +network +egress *skip
# Unclear in any case, so its options need no list.
docker {build buildx builder bake}, docker image build, docker compose build :: lax -t= -f=read --file=read \
  --build-arg= --target= --platform= --tag= --cache-from= --cache-to= -o=write --output=write --secret=read --ssh= \
  --progress= --network= +execute +network +?container *read
docker compose :: -f=read --file=read -p= --project-name= --profile= --env-file=read --project-directory=read \
  --ansi= --progress= --parallel= --compatibility --all-resources --dry-run
# Unclear in any case: what they start runs in a container.
docker compose {up run exec start restart create watch} :: lax +execute +network +?container *skip
# Their operands are containers; a rule asks.
docker compose {down stop kill rm pause}, docker {stop kill restart start pause unpause wait rename update}, docker \
  container {stop kill} :: lax -t= -v!delete --volumes!delete --rmi=!delete +process *skip
# A rule asks in any case, so its options need no list.
docker {rm rmi prune}, docker system prune, docker image {prune rm}, docker container {prune rm}, docker volume {rm \
  prune}, docker network {rm prune}, docker builder prune :: lax +delete *skip
# Unclear in any case: a path of the container or of this machine.
docker cp :: lax +?container +read +write *skip
# Their operands are images and names; a rule asks about each of these changes.
docker {tag save load import export commit context swarm service stack node secret config plugin}, docker volume \
  create, docker network {create connect}, docker image {tag save} :: lax -o=write --output=write -i=read \
  --input=read +system *skip
docker, podman, nerdctl :: -[Dv] -H=send --host=send -c=!network,egress --context=!network,egress --config=program \
  -l= --log-level= --debug --tls --tlsverify --tlscacert=read --tlscert=read --tlskey=secretfile --url=send \
  --connection=send -r!network,egress --remote!network,egress --identity=secretfile -n= --namespace= \
  --root=!privilege --address=socket
# Unclear in any case, so its options need no list.
minikube, kind, k3d, multipass, lima, limactl, colima, orb, qemu-system-x86_64, VBoxManage, virsh :: lax +execute \
  +?container
"""
